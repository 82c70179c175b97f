// The Python line that ran a forward operation. Recording keeps only the code object and the instruction (a few
// nanoseconds); the file and line are worked out when an error names them.
#include "anomaly.h"

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
uint32_t instruction_of(FramePointer f, PyObject*) {
  return static_cast<uint32_t>(PyUnstable_InterpreterFrame_GetLasti(f));
}
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
inline FramePointer current_frame() {
  return reinterpret_cast<FramePointer>(_PyThreadState_UncheckedGet()->cframe->current_frame);
}
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

namespace {

// The innermost frame outside the package: a new reference to its code (or nullptr), and the instruction.
inline PyObject* capture(uint32_t& instruction) {
  FramePointer frame = current_frame();
  for (int depth = 0; frame && depth < 64; depth++, frame = previous(frame)) {
    PyObject* code = code_of(frame);
    if (RL_UNLIKELY(!code)) continue;
    if (RL_LIKELY(!is_internal(code))) {
      instruction = instruction_of(frame, code);
      return code;
    }
    Py_DECREF(code);
  }
  return nullptr;
}

bool resolve(PyObject* code_object, uint32_t instruction, std::string& file, int& line, std::string& function) {
  if (!code_object) return false;
  auto* code = reinterpret_cast<PyCodeObject*>(code_object);
  line = PyCode_Addr2Line(code, static_cast<int>(instruction));
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

// "file:12, in f", and the text of the line where the file is at hand.
std::string place_text(const std::string& file, int line, const std::string& function) {
  std::string text = file + ":" + std::to_string(line) + ", in " + function;
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

// The last in-place writes. A write to memory that a live tensor shares is newer than any to memory that was there
// before, so the newest entry that fits is the right one.
struct Write {
  const Storage* storage;
  const Op* op;
  PyObject* code;
  uint32_t version, instruction;
};
constexpr size_t kWrites = 4096;  // more than the parameters an optimizer's step writes
Write writes[kWrites];
size_t write_count = 0;

}  // namespace

void capture_line(Node* n) {
  n->code = capture(n->instruction);
  if (RL_UNLIKELY(anomaly.enabled)) anomaly_recorded(n);
}

void remember_write(const Tensor* t, const Op& op) {
  Write& w = writes[write_count++ % kWrites];
  PyObject* old = w.code;
  w.storage = t->storage;
  w.version = t->storage->version;
  w.op = &op;
  w.code = capture(w.instruction);
  Py_XDECREF(old);
}

PyObject* capture_stack() {
  PyObject* list = PyList_New(0);
  FramePointer frame = current_frame();
  for (int depth = 0; list && frame && depth < 64; depth++, frame = previous(frame)) {
    Py code(code_of(frame));
    if (!code || is_internal(code.get())) continue;
    std::string file, function;
    int line = 0;
    if (!resolve(code.get(), instruction_of(frame, code.get()), file, line, function)) continue;
    Py item(Py_BuildValue("(sis)", file.c_str(), line, function.c_str()));
    if (!item || PyList_Append(list, item.get()) < 0) Py_CLEAR(list);
  }
  return list;
}

std::string writer_text(const Tensor* t, uint32_t version) {
  for (size_t back = 1; back <= kWrites && back <= write_count; back++) {
    const Write& w = writes[(write_count - back) % kWrites];
    if (w.storage != t->storage || w.version != version) continue;
    std::string file, function, name = w.op->title();
    int line = 0;
    if (!resolve(w.code, w.instruction, file, line, function)) return "";
    if (name.back() != '_') name += "_";
    return "\n  it was overwritten by " + name + " at " + place_text(file, line, function);
  }
  return "";
}

bool line_of(Node* n, std::string& file, int& line, std::string& function) {
  return resolve(n->code, n->instruction, file, line, function);
}

std::string line_text(Node* n) {
  std::string file, function;
  int line = 0;
  if (!line_of(n, file, line, function)) return "";
  return "\n  " + node_name(n) + " was recorded at " + place_text(file, line, function);
}

}  // namespace rl
