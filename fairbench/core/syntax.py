"""Syntax trees reduced to what computes: no docstring, annotation or message of an error."""

from __future__ import annotations

import ast
from typing import Any

_SENTENCES = ("needs", "advice")  # of Capabilities, for people to read
_REFUSALS = ("UserError", "DataError", "IncompatibleError", "unknown_name")


def computing_tree(tree: ast.Module) -> ast.Module:
    """Return a module's tree without what cannot change a result."""
    reduced: ast.Module = _Reduce().visit(tree)
    return reduced


class _Reduce(ast.NodeTransformer):
    """Drops what people read and what type checkers read."""

    def visit_Module(self, node: ast.Module) -> ast.AST:
        return self._without_docstring(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        return self._without_docstring(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns = None
        return self._without_docstring(node)

    def visit_arg(self, node: ast.arg) -> ast.AST:
        node.annotation = None
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        node.annotation = ast.Constant(None)
        return self.generic_visit(node)

    def visit_If(self, node: ast.If) -> ast.AST | None:
        if isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            return None
        return self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Keep that an error is made, and leave out what it says."""
        if isinstance(node.func, ast.Name) and _is_error(node.func.id):
            return ast.Call(node.func, [], [])
        node.keywords = [each for each in node.keywords if each.arg not in _SENTENCES]
        return self.generic_visit(node)

    def visit_Set(self, node: ast.Set) -> ast.AST:
        node.elts.sort(key=ast.dump)
        return self.generic_visit(node)

    def _without_docstring(self, node: Any) -> ast.AST:
        if ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:] or [ast.Pass()]
        reduced: ast.AST = self.generic_visit(node)
        return reduced


def _is_error(name: str) -> bool:
    return name in _REFUSALS or name.endswith(("Error", "Exception"))
