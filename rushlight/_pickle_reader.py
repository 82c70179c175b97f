"""A pickle interpreter that runs no code: it builds plain data, and what a table of constructors names.

Python's own unpickler looks up any name a file mentions and calls it. This one knows a fixed table (`Constructors`);
another name is either refused, with all such names in one error, or becomes an `UnknownObject` that only holds what the
file says of it. Whatever the file contains, the result is data or an `UnpicklingError`.
"""

from __future__ import annotations

import _compat_pickle
import codecs
import struct
import sys
from collections import deque
from collections.abc import Callable, Iterable
from pickle import UnpicklingError
from typing import Any

Build = Callable[[Any, Any], None]

# Keys of dicts and members of sets are hashed by recursion in C, which a file must not be able to drive deep.
_KEY_DEPTH, _KEY_NODES = 32, 10_000
_SMALL_KEYS = (str, int, float, bool, bytes, complex, type(None))

# Functions of these are what attacks call, so calling one is refused even where unknown classes are kept.
_STANDARD_MODULES = frozenset(sys.stdlib_module_names) | {"__builtin__", "posix", "nt", "torch", "rushlight", "numpy"}


def check_key(key: Any) -> Any:
    """`key`, when it is hashable and not nested beyond what is sound; UnpicklingError or TypeError otherwise."""
    level, nodes = [key], 0
    for _ in range(_KEY_DEPTH):
        nodes += len(level)
        if nodes > _KEY_NODES:
            break
        level = [item for value in level if isinstance(value, tuple) for item in value]
        if not level:
            hash(key)
            return key
    raise UnpicklingError("load: a dict key or set member is nested too deeply")


class UnknownGlobal:
    """The name of a class or function that a file refers to and the reader does not know."""

    def __init__(self, module: str, name: str) -> None:
        self.module, self.name = module, name

    def __repr__(self) -> str:
        return f"<unknown global {self.module}.{self.name}>"


class UnknownObject:
    """An object of a class the reader does not know: the class's name and the data the file gives, without behaviour.

    `args` are the constructor's arguments; `state` is what its attributes were made from (as a rule a dict, and then
    readable as attributes); `items` what was put into it as into a list or dict.
    """

    def __init__(self, type_name: UnknownGlobal, args: tuple[Any, ...]) -> None:
        self.__dict__.update(type_name=f"{type_name.module}.{type_name.name}", args=args, state=None, items=[])

    def __repr__(self) -> str:
        return f"<object of unknown class {self.__dict__['type_name']}>"

    def __getattr__(self, name: str) -> Any:
        state = self.__dict__.get("state")
        if isinstance(state, tuple) and len(state) == 2:
            state = {**(state[0] or {}), **(state[1] or {})}
        if isinstance(state, dict) and name in state:
            return state[name]
        raise AttributeError(
            f"{self.__dict__.get('type_name')} is a class that load() does not know, so this object holds only its "
            f"data, and there is no {name!r} in it; add the class with serialization.add_safe_globals"
        )


class Constructors:
    """What a file may name, and what may be done with it.

    `names` maps "module.name" to an object. What calling it means, or making a bare instance of it (`new`, where that
    is not the same), is kept by the object's identity; what applying a state to an instance means, by type in `builds`.
    """

    def __init__(self) -> None:
        self.names: dict[str, Any] = {}
        self.builds: dict[type, Build] = {}
        self._calls: dict[int, Callable[..., Any]] = {}
        self._news: dict[int, Callable[..., Any]] = {}

    def add(
        self,
        names: Iterable[str],
        value: Any,
        call: Callable[..., Any] | None = None,
        new: Callable[..., Any] | None = None,
    ) -> None:
        for name in names:
            self.names[name] = value
        if call is not None:
            self._calls[id(value)] = call
        if new is not None:
            self._news[id(value)] = new

    def call_of(self, value: Any) -> Callable[..., Any] | None:
        return self._calls.get(id(value))

    def new_of(self, value: Any) -> Callable[..., Any] | None:
        return self._news.get(id(value)) or self._calls.get(id(value))

    def build_of(self, value: Any) -> Build | None:
        for kind in type(value).__mro__:
            if kind in self.builds:
                return self.builds[kind]
        return None

    def copy(self) -> Constructors:
        other = Constructors()
        other.names, other.builds = dict(self.names), dict(self.builds)
        other._calls, other._news = dict(self._calls), dict(self._news)
        return other


class _Stop(Exception):
    pass


class Reader:
    """Interprets one pickle in `data` from `position` on; `position` is behind it afterwards.

    keep_unknown: make UnknownObjects instead of refusing. Names not in the table are collected in `unknown`.
    finish: called on a value before it goes into a container or comes out as the result (None: taken as it is).
    """

    def __init__(
        self,
        data: bytes | memoryview,
        constructors: Constructors,
        persistent_load: Callable[[Any], Any] | None = None,
        *,
        label: str = "the pickle",
        position: int = 0,
        encoding: str = "utf-8",
        keep_unknown: bool = False,
        finish: Callable[[Any], Any] | None = None,
    ) -> None:
        self._data, self._size = memoryview(data), len(data)
        self.position = position
        self._constructors, self._persistent_load = constructors, persistent_load
        self._label, self._encoding, self._keep_unknown = label, encoding, keep_unknown
        self._finish = finish
        self._protocol = 0
        self._stack: list[Any] = []
        self._marks: list[list[Any]] = []
        self._memo: dict[int, Any] = {}
        self.unknown: dict[str, UnknownGlobal] = {}
        self._refused: dict[str, None] = {}
        self._inert = False  # nothing is built any more, only names are found

    # ---- reading

    def unknown_names(self) -> list[str]:
        """The names in the pickle that the table does not have; nothing is built."""
        self._inert = self._keep_unknown = True
        self.load()
        return list(self.unknown)

    def load(self) -> Any:
        handlers = _HANDLERS  # a local name, since every opcode looks it up
        start = self.position
        opcode = 0
        try:
            while True:
                if self.position >= self._size:
                    raise self._truncated(1)
                opcode = self._data[self.position]
                self.position += 1
                handlers[opcode](self)
        except _Stop:
            pass
        except (UnpicklingError, RuntimeError) as error:
            # After a refusal the rest is read with stand-ins; that they do not fit somewhere is no news.
            if not self._refused or not isinstance(error, UnpicklingError):
                raise
        except (IndexError, KeyError, ValueError, TypeError, OverflowError, AttributeError, struct.error) as error:
            if not self._refused:
                where = f"byte {self.position - start}, opcode {opcode:#04x}"
                raise UnpicklingError(
                    f"load: {self._label} is damaged ({where}): {type(error).__name__}: {error}"
                ) from error
        if self._refused:
            raise UnpicklingError(self._refusal())
        result = self._stack.pop()
        return result if self._finish is None else self._finish(result)

    def _refuse(self, name: str) -> None:
        self._refused[name] = None
        self._inert = True

    def _refusal(self) -> str:
        names = ", ".join(self._refused)
        return (
            f"load: {self._label} refers to names that load() does not know and so does not use, since they could run "
            f"code: {names}. If they are classes you trust, allow them with "
            f"rushlight.serialization.add_safe_globals([...]); weights_only=False reads objects of unknown classes as "
            f"plain data"
        )

    def _fail(self, text: str) -> UnpicklingError:
        return UnpicklingError(f"load: {self._label}: {text}")

    def _truncated(self, size: int) -> UnpicklingError:
        return self._fail(f"truncated at byte {self._size}: {size} more bytes are needed at byte {self.position}")

    def _take(self, size: int) -> memoryview:
        if size < 0:
            raise self._fail(f"damaged: a length of {size} at byte {self.position}")
        if size > self._size - self.position:
            raise self._truncated(size)
        piece = self._data[self.position : self.position + size]
        self.position += size
        return piece

    def _line(self) -> str:
        return self._raw_line().decode("utf-8", "surrogatepass")

    def _raw_line(self) -> bytes:
        # Lines occur in protocol 0 and in names; none of them is long.
        at = self.position
        while True:
            window = bytes(self._data[at : at + 256])
            end = window.find(b"\n")
            if end >= 0:
                break
            if len(window) < 256:
                raise self._truncated(1)
            at += 256
        line = bytes(self._data[self.position : at + end])
        self.position = at + end + 1
        return line

    def _int(self, size: int, signed: bool = False) -> int:
        return int.from_bytes(self._take(size), "little", signed=signed)

    # ---- the stack

    def _push(self, value: Any) -> None:
        self._stack.append(value)

    def _mark(self) -> None:
        self._marks.append(self._stack)
        self._stack = []

    def _pop_mark(self) -> list[Any]:
        items = self._stack
        self._stack = self._marks.pop()
        return items

    def _value(self, value: Any) -> Any:
        return value if self._finish is None else self._finish(value)

    # ---- names

    def _find(self, module: str, name: str) -> Any:
        if self._protocol < 3:
            module, name = _compat_pickle.NAME_MAPPING.get((module, name), (module, name))
            module = _compat_pickle.IMPORT_MAPPING.get(module, module)
        full = f"{module}.{name}"
        known = self._constructors.names
        if full in known:
            return known[full]
        found = self.unknown.get(full)
        if found is None:
            found = self.unknown[full] = UnknownGlobal(module, name)
            if not self._keep_unknown:
                self._refuse(full)
        return found

    def _global(self) -> None:
        module, name = self._line(), self._line()
        self._push(self._find(module, name))

    def _stack_global(self) -> None:
        name, module = self._stack.pop(), self._stack.pop()
        if type(name) is not str or type(module) is not str:
            raise self._fail("damaged: a name that is not text")
        self._push(self._find(module, name))

    def _extension(self) -> None:
        raise self._fail("uses copyreg extension codes, which load() does not know")

    # ---- objects

    def _construct(self, callee: Any, args: Any, keywords: dict[str, Any] | None = None, *, called: bool) -> Any:
        if isinstance(callee, UnknownGlobal):
            if called and self._keep_unknown and not self._inert and callee.module.split(".")[0] in _STANDARD_MODULES:
                self._refuse(f"{callee.module}.{callee.name}")
            given = tuple(args) if isinstance(args, tuple) else (args,)
            return UnknownObject(callee, (*given, keywords) if keywords else given)
        if self._inert:
            return UnknownObject(UnknownGlobal("?", "?"), ())
        call = self._constructors.call_of(callee) if called else self._constructors.new_of(callee)
        if call is None:
            raise self._fail(f"calls {_described(callee)}, which is not among the constructors that load() knows")
        if type(args) is not tuple:
            raise self._fail(f"damaged: the arguments of {_described(callee)} are not a tuple")
        return call(*args, **(keywords or {}))

    def _reduce(self) -> None:
        args = self._stack.pop()
        callee = self._stack[-1]
        if callee is _NEW_OBJECT and type(args) is tuple and args:
            # copyreg.__newobj__(cls, *args), as old protocols write NEWOBJ.
            self._stack[-1] = self._construct(args[0], args[1:], called=False)
        elif callee is _RECONSTRUCT and type(args) is tuple and len(args) == 3:
            # copyreg._reconstructor(cls, object, None): protocols 0 and 1.
            self._stack[-1] = self._construct(args[0], () if args[2] is None else (args[2],), called=False)
        else:
            self._stack[-1] = self._construct(callee, args, called=True)

    def _new_object(self) -> None:
        args = self._stack.pop()
        self._stack[-1] = self._construct(self._stack[-1], args, called=False)

    def _new_object_keywords(self) -> None:
        keywords, args = self._stack.pop(), self._stack.pop()
        if type(keywords) is not dict:
            raise self._fail("damaged: keyword arguments that are not a dict")
        self._stack[-1] = self._construct(self._stack[-1], args, keywords, called=False)

    def _instance(self) -> None:
        module, name = self._line(), self._line()
        args = tuple(self._pop_mark())
        self._push(self._construct(self._find(module, name), args, called=False))

    def _object(self) -> None:
        items = self._pop_mark()
        self._push(self._construct(items[0], tuple(items[1:]), called=False))

    def _build(self) -> None:
        state = self._stack.pop()
        target = self._stack[-1]
        if isinstance(target, UnknownObject):
            target.__dict__["state"] = state
            return
        build = self._constructors.build_of(target)
        if build is None:
            if self._inert:
                return
            raise self._fail(f"sets attributes of {_described(target)}, which load() does not do")
        build(target, state)

    def _persistent(self, identifier: Any) -> None:
        if self._inert:
            self._push(UnknownObject(UnknownGlobal("?", "?"), ()))
            return
        if self._persistent_load is None:
            raise self._fail("refers to storages, which it does not have")
        self._push(self._persistent_load(identifier))

    # ---- containers

    def _key(self, key: Any) -> Any:
        return key if type(key) in _SMALL_KEYS else check_key(self._value(key))

    def _set_items(self, target: Any, items: list[Any]) -> None:
        if len(items) % 2:
            raise self._fail("damaged: a dict key without a value")
        if isinstance(target, UnknownObject):
            target.__dict__["items"].extend(zip(items[::2], items[1::2], strict=True))
            return
        if not isinstance(target, dict):
            raise self._fail(f"damaged: puts items into {_described(target)}, which is not a dict")
        for i in range(0, len(items), 2):
            target[self._key(items[i])] = self._value(items[i + 1])

    def _append_items(self, target: Any, items: list[Any]) -> None:
        if isinstance(target, UnknownObject):
            target.__dict__["items"].extend(items)
        elif isinstance(target, (list, deque)):
            target.extend(items if self._finish is None else map(self._finish, items))
        else:
            raise self._fail(f"damaged: appends to {_described(target)}, which is not a list")

    def _add_items(self) -> None:
        items = self._pop_mark()
        target = self._stack[-1]
        if isinstance(target, UnknownObject):
            target.__dict__["items"].extend(items)
        elif isinstance(target, set):
            target.update([self._key(item) for item in items])
        else:
            raise self._fail(f"damaged: adds to {_described(target)}, which is not a set")

    def _make_dict(self) -> None:
        items = self._pop_mark()
        self._push({})
        self._set_items(self._stack[-1], items)

    def _make_list(self) -> None:
        items = self._pop_mark()
        self._push([])
        self._append_items(self._stack[-1], items)

    def _make_tuple(self, size: int) -> None:
        if size > len(self._stack):
            raise self._fail("damaged: a tuple longer than the stack")
        self._stack[-size:] = [tuple(self._stack[-size:])]

    def _set_item(self) -> None:
        value, key = self._stack.pop(), self._stack.pop()
        self._set_items(self._stack[-1], [key, value])

    def _append(self) -> None:
        value = self._stack.pop()
        self._append_items(self._stack[-1], [value])

    def _set_marked(self) -> None:
        items = self._pop_mark()
        self._set_items(self._stack[-1], items)

    def _append_marked(self) -> None:
        items = self._pop_mark()
        self._append_items(self._stack[-1], items)

    # ---- the rest

    def _set_protocol(self) -> None:
        self._protocol = self._int(1)
        if self._protocol > 5:
            raise self._fail(f"pickle protocol {self._protocol} is not known; expected at most 5")

    def _pop(self) -> None:
        if self._stack:
            self._stack.pop()
        else:
            self._pop_mark()

    def _drop_mark(self) -> None:
        self._pop_mark()

    def _frame(self) -> None:
        self._take(8)  # frames only help a reader that reads from a file

    def _put(self, index: int) -> None:
        if index < 0:
            raise self._fail("damaged: a negative memo index")
        self._memo[index] = self._stack[-1]

    def _integer_line(self, *, booleans: bool) -> int | bool:
        line = self._line()
        if booleans and line in ("00", "01"):
            return line == "01"
        return int(line.rstrip("L"), 0 if booleans else 10)

    def _text(self, size: int) -> str:
        return str(self._take(size), "utf-8", "surrogatepass")

    def _python2_text(self, data: bytes) -> str | bytes:
        return data if self._encoding == "bytes" else data.decode(self._encoding)

    def _string_line(self) -> None:
        line = self._raw_line()
        if len(line) < 2 or line[0] != line[-1] or line[:1] not in (b'"', b"'"):
            raise self._fail("damaged: a string without its quotes")
        self._push(self._python2_text(codecs.escape_decode(line[1:-1])[0]))

    def _stop(self) -> None:
        if len(self._stack) != 1 or self._marks:
            raise self._fail("damaged: it ends before its objects are complete")
        raise _Stop


def _described(value: Any) -> str:
    if isinstance(value, type) or callable(value):
        return f"{getattr(value, '__module__', '?')}.{getattr(value, '__qualname__', type(value).__name__)}"
    return f"an object of type {type(value).__name__}"


class _Named:
    def __init__(self, name: str) -> None:
        self.__qualname__ = name


_NEW_OBJECT, _RECONSTRUCT = _Named("copyreg.__newobj__"), _Named("copyreg._reconstructor")
OBJECT_PROTOCOL = {
    "copyreg.__newobj__": _NEW_OBJECT,
    "copyreg._reconstructor": _RECONSTRUCT,
    "builtins.object": object,
}


def _unknown_opcode(reader: Reader) -> None:
    raise reader._fail(f"damaged: unknown opcode at byte {reader.position - 1}")


def _handlers() -> list[Callable[[Reader], None]]:
    def pushing(value: Any) -> Callable[[Reader], None]:
        return lambda r: r._push(value)

    table: dict[str | int, Callable[[Reader], None]] = {
        0x80: lambda r: r._set_protocol(),
        ".": lambda r: r._stop(),
        "(": lambda r: r._mark(),
        "0": lambda r: r._pop(),
        "1": lambda r: r._drop_mark(),
        "2": lambda r: r._push(r._stack[-1]),
        "N": pushing(None),
        0x88: pushing(True),
        0x89: pushing(False),
        "I": lambda r: r._push(r._integer_line(booleans=True)),
        "L": lambda r: r._push(r._integer_line(booleans=False)),
        "J": lambda r: r._push(r._int(4, signed=True)),
        "K": lambda r: r._push(r._int(1)),
        "M": lambda r: r._push(r._int(2)),
        0x8A: lambda r: r._push(r._int(r._int(1), signed=True)),
        0x8B: lambda r: r._push(r._int(r._int(4, signed=True), signed=True)),
        "F": lambda r: r._push(float(r._line())),
        "G": lambda r: r._push(struct.unpack(">d", r._take(8))[0]),
        "S": lambda r: r._string_line(),
        "T": lambda r: r._push(r._python2_text(bytes(r._take(r._int(4, signed=True))))),
        "U": lambda r: r._push(r._python2_text(bytes(r._take(r._int(1))))),
        "V": lambda r: r._push(str(r._raw_line(), "raw-unicode-escape")),
        "X": lambda r: r._push(r._text(r._int(4))),
        0x8C: lambda r: r._push(r._text(r._int(1))),
        0x8D: lambda r: r._push(r._text(r._int(8))),
        "B": lambda r: r._push(bytes(r._take(r._int(4)))),
        "C": lambda r: r._push(bytes(r._take(r._int(1)))),
        0x8E: lambda r: r._push(bytes(r._take(r._int(8)))),
        0x96: lambda r: r._push(bytearray(r._take(r._int(8)))),
        "]": lambda r: r._push([]),
        "}": lambda r: r._push({}),
        ")": pushing(()),
        0x8F: lambda r: r._push(set()),
        "l": lambda r: r._make_list(),
        "t": lambda r: r._push(tuple(r._pop_mark())),
        0x85: lambda r: r._make_tuple(1),
        0x86: lambda r: r._make_tuple(2),
        0x87: lambda r: r._make_tuple(3),
        "d": lambda r: r._make_dict(),
        0x91: lambda r: r._push(frozenset([r._key(item) for item in r._pop_mark()])),
        "a": lambda r: r._append(),
        "e": lambda r: r._append_marked(),
        "s": lambda r: r._set_item(),
        "u": lambda r: r._set_marked(),
        0x90: lambda r: r._add_items(),
        "p": lambda r: r._put(int(r._line())),
        "q": lambda r: r._put(r._int(1)),
        "r": lambda r: r._put(r._int(4)),
        0x94: lambda r: r._put(len(r._memo)),
        "g": lambda r: r._push(r._memo[int(r._line())]),
        "h": lambda r: r._push(r._memo[r._int(1)]),
        "j": lambda r: r._push(r._memo[r._int(4)]),
        "c": lambda r: r._global(),
        0x93: lambda r: r._stack_global(),
        "R": lambda r: r._reduce(),
        "b": lambda r: r._build(),
        "i": lambda r: r._instance(),
        "o": lambda r: r._object(),
        0x81: lambda r: r._new_object(),
        0x92: lambda r: r._new_object_keywords(),
        "P": lambda r: r._persistent(r._line()),
        "Q": lambda r: r._persistent(r._stack.pop()),
        0x95: lambda r: r._frame(),
        0x82: lambda r: r._extension(),
        0x83: lambda r: r._extension(),
        0x84: lambda r: r._extension(),
    }
    found: list[Callable[[Reader], None]] = [_unknown_opcode] * 256
    for code, handler in table.items():
        found[ord(code) if isinstance(code, str) else code] = handler
    return found


_HANDLERS = _handlers()
