// The Python line that ran a forward operation. Recording keeps only the code object and the instruction (a few
// nanoseconds); the file and line are worked out when an error names them.
#include "node.h"

#include <dlfcn.h>
#include <frameobject.h>

#if PY_VERSION_HEX >= 0x030F0000
#define RL_FRAMES_BY_API 1  // unknown layout: the public way, which makes a frame object
#endif

namespace rl {

namespace {

#if !defined(RL_FRAMES_BY_API) && PY_VERSION_HEX >= 0x030C0000
// The interpreter's own frames. Only the place of `previous` is assumed; the rest goes through the unstable API.
struct FrameHead {
  void* executable;
  _PyInterpreterFrame* previous;
};
_PyInterpreterFrame* current_frame() {
#if PY_VERSION_HEX >= 0x030D0000
  return PyThreadState_Get()->current_frame;
#else
  return PyThreadState_Get()->cframe->current_frame;
#endif
}
using FramePointer = _PyInterpreterFrame*;
FramePointer previous(FramePointer f) { return reinterpret_cast<FrameHead*>(f)->previous; }
PyObject* code_of(FramePointer f) { return PyUnstable_InterpreterFrame_GetCode(f); }  // new reference
uint32_t instruction_of(FramePointer f, PyObject*) { return static_cast<uint32_t>(PyUnstable_InterpreterFrame_GetLasti(f)); }
#elif !defined(RL_FRAMES_BY_API) && PY_VERSION_HEX >= 0x030B0000
// Python 3.11 has no API for frames without frame objects: this is the start of its _PyInterpreterFrame.
struct FrameLayout {
  PyObject *function, *globals, *builtins, *locals;
  PyObject* code;
  PyObject* frame_object;
  FrameLayout* previous;
  const char* last_instruction;
};
using FramePointer = FrameLayout*;
inline FramePointer current_frame() { return reinterpret_cast<FramePointer>(_PyThreadState_UncheckedGet()->cframe->current_frame); }
inline FramePointer previous(FramePointer f) { return f->previous; }
inline PyObject* code_of(FramePointer f) {
  Py_XINCREF(f->code);
  return f->code;
}
inline uint32_t instruction_of(FramePointer f, PyObject* code) {
  return static_cast<uint32_t>(f->last_instruction - reinterpret_cast<PyCodeObject*>(code)->co_code_adaptive);
}
#else
using FramePointer = PyFrameObject*;
FramePointer current_frame() { return PyEval_GetFrame(); }
FramePointer previous(FramePointer f) {
  PyFrameObject* back = PyFrame_GetBack(f);
  Py_XDECREF(back);  // kept alive by f
  return back;
}
PyObject* code_of(FramePointer f) { return reinterpret_cast<PyObject*>(PyFrame_GetCode(f)); }
#if PY_VERSION_HEX >= 0x030B0000
uint32_t instruction_of(FramePointer f, PyObject*) { return static_cast<uint32_t>(PyFrame_GetLasti(f)); }
#else
uint32_t instruction_of(FramePointer f, PyObject*) { return static_cast<uint32_t>(f->f_lasti * 2); }
#endif
#endif

// The directory of the package, with the final slash.
const std::string& package_directory() {
  static const std::string directory = [] {
    Dl_info info;
    if (!dladdr(reinterpret_cast<const void*>(&capture_line), &info) || !info.dli_fname) return std::string();
    std::string path = info.dli_fname;
    return path.substr(0, path.rfind('/') + 1);
  }();
  return directory;
}

bool inside_package(PyObject* code) {
  if (!PyCode_Check(code)) return true;
  Py_ssize_t length;
  const char* file = PyUnicode_AsUTF8AndSize(reinterpret_cast<PyCodeObject*>(code)->co_filename, &length);
  if (!file) {
    PyErr_Clear();
    return false;
  }
  const std::string& directory = package_directory();
  if (!directory.empty() && !std::strncmp(file, directory.c_str(), directory.size())) return true;
  return !std::strncmp(file, "<frozen", 7) || !std::strncmp(file, "<shim", 5) || !std::strncmp(file, "<trampoline", 11);
}

// Which code objects are the package's own, remembered by address. Entries own their code object, so that an address
// cannot come to mean another.
struct Known {
  PyObject* code;
  bool internal;
};
constexpr size_t kKnown = 256;
Known known[kKnown];

inline bool is_internal(PyObject* code) {
  Known& k = known[(reinterpret_cast<uintptr_t>(code) >> 5) % kKnown];
  if (RL_UNLIKELY(k.code != code)) {
    bool internal = inside_package(code);
    PyObject* old = k.code;
    Py_INCREF(code);
    k = {code, internal};
    Py_XDECREF(old);
  }
  return k.internal;
}

}  // namespace

void capture_line(Node* n) {
  FramePointer frame = current_frame();
  for (int depth = 0; frame && depth < 64; depth++, frame = previous(frame)) {
    PyObject* code = code_of(frame);
    if (RL_UNLIKELY(!code)) continue;
    if (RL_LIKELY(!is_internal(code))) {
      n->code = code;
      n->instruction = instruction_of(frame, code);
      return;
    }
    Py_DECREF(code);
  }
}

bool line_of(Node* n, std::string& file, int& line, std::string& function) {
  if (!n->code) return false;
  auto* code = reinterpret_cast<PyCodeObject*>(n->code);
#if PY_VERSION_HEX >= 0x030B0000
  int offset = static_cast<int>(n->instruction);
#else
  int offset = static_cast<int>(n->instruction / 2 * 2);
#endif
  line = PyCode_Addr2Line(code, offset);
  const char* name = PyUnicode_AsUTF8(code->co_filename);
  file = name ? name : "?";
#if PY_VERSION_HEX >= 0x030B0000
  const char* label = PyUnicode_AsUTF8(code->co_qualname);
#else
  const char* label = PyUnicode_AsUTF8(code->co_name);
#endif
  function = label ? label : "?";
  if (!name || !label) PyErr_Clear();
  return line > 0;
}

std::string line_text(Node* n) {
  std::string file, function;
  int line = 0;
  if (!line_of(n, file, line, function)) return "";
  std::string text = "\n  " + node_name(n) + " was recorded at " + file + ":" + std::to_string(line) + ", in " + function;
  // The text of the line, where the file is at hand.
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  Py module(PyImport_ImportModule("linecache"));
  Py source(module ? PyObject_CallMethod(module.get(), "getline", "si", file.c_str(), line) : nullptr);
  const char* s = source && PyUnicode_Check(source.get()) ? PyUnicode_AsUTF8(source.get()) : nullptr;
  if (s) {
    std::string stripped = s;
    size_t from = stripped.find_first_not_of(" \t"), to = stripped.find_last_not_of(" \t\r\n");
    if (from != std::string::npos) text += "\n    " + stripped.substr(from, to - from + 1);
  }
  PyErr_Restore(type, value, trace);
  return text;
}

}  // namespace rl
