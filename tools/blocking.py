"""Makes the blocking clients from the asyncio ones: the same calls, signatures and texts.

Five rules say how a call is translated; whoever breaks one is told by the type checker, which reads
what is made here like any other module:

- a coroutine is run on the loop and waited for; so is a plain method, for the loop's sake
- a property is read
- a delivery is wrapped, so that it can be waited for
- an asynchronous context manager becomes a plain one, and its `Self` is the blocking client
- a client that is given as an argument is given on as the asyncio client within it
"""

import ast
import builtins
import inspect
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

from semel.client.admin.admin import Admin
from semel.client.consumer.consumer import Consumer
from semel.client.ledger import Ledger
from semel.client.lifetime import Lifetime
from semel.client.producer.producer import Producer

Function = ast.FunctionDef | ast.AsyncFunctionDef

CLIENTS: dict[str, type[Any]] = {
    "admin": Admin,
    "consumer": Consumer,
    "ledger": Ledger,
    "producer": Producer,
}
_LOOP = "semel.client.blocking.loop"
_DELIVERIES = {"Delivery": "RecordMetadata", "TableDelivery": "TableMetadata"}
_ITERATION = {"__aiter__": "__iter__", "__anext__": "__next__"}
_HEAD = '''"""The blocking {noun}. Made from the asyncio one by `make generated`: change that."""

from __future__ import annotations
'''


@dataclass
class Names:
    """What the made module has to import: at run time, or for type checkers alone."""

    always: set[tuple[str, str]] = field(default_factory=set)
    typing: set[tuple[str, str]] = field(default_factory=set)

    def lines(self) -> Iterator[str]:
        for module, name in sorted(self.always):
            yield f"from {module} import {name}"
        apart = self.typing - self.always
        if apart:
            yield "if TYPE_CHECKING:"
            yield from (f"    from {module} import {name}" for module, name in sorted(apart))


def blocking_module(noun: str) -> str:
    """The whole text of the module, not yet formatted."""
    client = CLIENTS[noun]
    names = Names(always={("typing", "TYPE_CHECKING"), (_LOOP, "run")})
    names.always.add((client.__module__, f"{client.__name__} as Asyncio{client.__name__}"))
    body = "\n\n".join(_class(client, names))
    imports = "\n".join(names.lines())
    return f"{_HEAD.format(noun=noun)}\n{imports}\n\n\n{body}\n"


def _class(client: type[Any], names: Names) -> Iterator[str]:
    generic = [each.__name__ for each in getattr(client, "__parameters__", ())]
    bases = []
    if issubclass(client, Lifetime):
        bases.append("Blocking")
        names.always.add(("semel.client.blocking.wrapping", "Blocking"))
    if generic:
        bases.append(f"Generic[{', '.join(generic)}]")
        names.always.add(("typing", "Generic"))
        names.always |= {(_home_of(client, each), each) for each in generic}
    head = f"class {client.__name__}({', '.join(bases)}):" if bases else f"class {client.__name__}:"
    yield f'{head}\n    """{_document(client)}"""'
    for owner in _owners(client):
        module = inspect.getmodule(owner)
        assert module is not None
        source = _Source(client, module, names)
        for node in _body(owner):
            if isinstance(node, Function):
                yield from source.method(node)
    yield from _settings(client, names)
    if generic:
        yield _wrapper(f"Asyncio{client.__name__}[{', '.join(generic)}]")
        names.typing.add(("typing", "Self"))


def _wrapper(kind: str) -> str:
    """For who has the asyncio client already: a `transact` loop."""
    return (
        f"    @classmethod\n    def _of(cls, client: {kind}) -> Self:\n"
        "        made = cls.__new__(cls)\n        made._client = client\n        return made"
    )


def _settings(client: type[Any], names: Names) -> Iterator[str]:
    kind = client.__annotations__.get("settings") or next(
        (base.__annotations__["settings"] for base in client.__mro__
         if "settings" in getattr(base, "__annotations__", {})), None,
    )  # fmt: skip
    if kind is not None:
        names.typing.add(("semel.client.settings", kind))
        yield (
            f"    @property\n    def settings(self) -> {kind}:\n"
            f'        """All settings as they are in force."""\n'
            f"        return self._client.settings"
        )


def _owners(client: type[Any]) -> list[type[Any]]:
    """The client itself first, then what it is made of."""
    return [
        cls for cls in client.__mro__ if cls.__module__.startswith("semel.") and cls is not Lifetime
    ]


def _body(owner: type[Any]) -> list[ast.stmt]:
    tree = ast.parse(inspect.getsource(owner))
    found = tree.body[0]
    assert isinstance(found, ast.ClassDef)
    return found.body


def _document(owner: Any) -> str:
    text = inspect.getdoc(owner)
    assert text, f"{owner.__name__} has no docstring"
    return text


@dataclass
class _Source:
    """The module that a class is read from."""

    client: type[Any]
    module: ModuleType
    names: Names

    def method(self, node: Function) -> Iterator[str]:
        name = _ITERATION.get(node.name, node.name)
        if node.name.startswith("_") and name == node.name != "__init__":
            return
        decorators = {ast.unparse(each) for each in node.decorator_list}
        returns = self._returned(node, "asynccontextmanager" in decorators)
        lines = []
        if "property" in decorators:
            lines.append("    @property")
        if "asynccontextmanager" in decorators:
            lines.append("    @contextmanager")
            self.names.always |= {("contextlib", "contextmanager"), (_LOOP, "inside")}
        lines.append(f"    def {name}({self._parameters(node)}) -> {returns}:")
        document = ast.get_docstring(node, clean=True)
        assert document, f"{self.client.__name__}.{node.name} has no docstring"
        lines.append('        """' + "\n        ".join(document.splitlines()) + _closing(document))
        lines += (f"        {line}" for line in self._calls(node, decorators, name))
        yield "\n".join(line.rstrip() for line in lines)

    def _parameters(self, node: Function) -> str:
        for each in ast.walk(node.args):
            if isinstance(each, ast.arg) and each.annotation is not None:
                self._import(each.annotation)
        for default in [*node.args.defaults, *filter(None, node.args.kw_defaults)]:
            self._import(default, always=True)
        return ast.unparse(node.args)

    def _returned(self, node: Function, is_context: bool) -> str:
        assert node.returns is not None
        text = ast.unparse(node.returns)
        if text in _DELIVERIES:
            metadata = _DELIVERIES[text]
            place = self.module.__name__.rpartition(".")[0]
            where = "columnar_send" if metadata == "TableMetadata" else "deliveries"
            self.names.typing.add((f"{place}.{where}", metadata))
            self.names.always.add(("semel.client.blocking.wrapping", "Delivery"))
            return f"Delivery[{metadata}]"
        if is_context:
            self.names.typing.add(("collections.abc", "Iterator"))
            return text.replace("AsyncIterator", "Iterator")
        self._import(node.returns)
        return text

    def _calls(self, node: Function, decorators: set[str], name: str) -> Iterator[str]:
        if node.name == "__init__":
            yield f"self._client = Asyncio{self.client.__name__}({self._given(node)})"
        elif "property" in decorators:
            yield f"return self._client.{node.name}"
        elif name == "__iter__":
            yield "return self"
        elif name == "__next__":
            self.names.always.add((_LOOP, "following"))
            yield "return following(self._client)"
        elif "asynccontextmanager" in decorators:
            is_self = "Self" in ast.unparse(node.returns or ast.Constant(""))
            made = f"self._client.{node.name}({self._given(node)})"
            yield f"with inside({made}){'' if is_self else ' as value'}:"
            yield f"    yield {'self' if is_self else 'value'}"
        else:
            yield from self._plain_call(node)

    def _plain_call(self, node: Function) -> Iterator[str]:
        made = f"self._client.{node.name}({self._given(node)})"
        if isinstance(node, ast.AsyncFunctionDef):
            made = f"run({made})"
        else:
            self.names.always.add((_LOOP, "call"))
            made = f"call(lambda: {made})"
        if ast.unparse(node.returns or ast.Constant("")) in _DELIVERIES:
            made = f"Delivery({made})"
        nothing = isinstance(node.returns, ast.Constant) and node.returns.value is None
        yield made if nothing else f"return {made}"

    def _given(self, node: Function) -> str:
        parts = [self._one(each) for each in node.args.args[1:]]
        if node.args.vararg:
            parts.append(f"*{node.args.vararg.arg}")
        parts += [f"{each.arg}={self._one(each)}" for each in node.args.kwonlyargs]
        if node.args.kwarg:
            parts.append(f"**{node.args.kwarg.arg}")
        return ", ".join(parts)

    def _one(self, argument: ast.arg) -> str:
        kind = ast.unparse(argument.annotation) if argument.annotation else ""
        is_client = kind in {each.__name__ for each in CLIENTS.values()}
        return f"{argument.arg}._client" if is_client else argument.arg

    def _import(self, expression: ast.expr, always: bool = False) -> None:
        for each in ast.walk(expression):
            if isinstance(each, ast.Name) and not hasattr(builtins, each.id):
                wanted = (self._place_of(each.id), each.id)
                (self.names.always if always else self.names.typing).add(wanted)

    def _place_of(self, name: str) -> str:
        if name in {each.__name__ for each in CLIENTS.values()}:
            noun = next(noun for noun, each in CLIENTS.items() if each.__name__ == name)
            return f"semel.client.blocking.{noun}"
        return _home(self.module, name)


def _home(module: ModuleType, name: str) -> str:
    """Where a name of the module comes from: another one, or itself."""
    for node in ast.walk(ast.parse(inspect.getsource(module))):
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                if (alias.asname or alias.name) == name:
                    return node.module
    return module.__name__


def _home_of(client: type[Any], name: str) -> str:
    module = inspect.getmodule(client)
    assert module is not None
    return _home(module, name)


def _closing(document: str) -> str:
    return '\n        """' if "\n\n" in document else '"""'
