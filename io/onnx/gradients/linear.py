"""Matrix products."""

from __future__ import annotations

from ..build.gradient_context import GradientContext, Gradients


def matmul(context: GradientContext) -> Gradients:
    """As in numpy: vectors are matrices of one row or column, and all axes before the last two are broadcast."""
    a, b = context.inputs
    dy = context.gradient
    shape_a, shape_b = context.shape(a), context.shape(b)
    if len(shape_a) == 1 or len(shape_b) == 1:
        return _vector_matmul(context)
    if len(shape_b) == 2:
        return _matmul_by_matrix(context)

    def left() -> str:
        return context.sum_to(context.add("MatMul", dy, _swapped(context, b)), 0)

    def right() -> str:
        return context.sum_to(context.add("MatMul", _swapped(context, a), dy), 1)

    return context.each(left, right)


def _matmul_by_matrix(context: GradientContext) -> Gradients:
    """A linear layer: all rows as one matrix, and Gemm, which transposes nothing in memory."""
    a, b = context.inputs
    builder = context.builder
    shape_a, shape_b = context.shape(a), context.shape(b)
    rows = builder.reshape(context.gradient, (_rows(shape_a), shape_b[1]))
    return context.each(
        lambda: builder.reshape(context.add("Gemm", rows, b, transB=1), shape_a, a),
        lambda: context.add("Gemm", builder.reshape(a, (_rows(shape_a), shape_b[0])), rows, transA=1),
    )


def _rows(shape: tuple[int | str, ...]) -> int | str:
    """Merge all axes except the last."""
    total = 1
    names: list[str] = []
    for dim in shape[:-1]:
        if isinstance(dim, int):
            total *= dim
        else:
            names.append(dim)
    return total if not names else "*".join([*([str(total)] if total != 1 else []), *names])


def _swapped(context: GradientContext, name: str) -> str:
    order = list(range(context.rank(name)))
    order[-2:] = reversed(order[-2:])
    return context.builder.transpose(name, order)


def _vector_matmul(context: GradientContext) -> Gradients:
    a, b = context.inputs
    builder = context.builder
    shape_a, shape_b, shape_y = context.shape(a), context.shape(b), context.shape(context.outputs[0])
    matrix_a = shape_a if len(shape_a) > 1 else (1, *shape_a)
    matrix_b = shape_b if len(shape_b) > 1 else (*shape_b, 1)
    lead = shape_y[: len(shape_y) - (len(shape_a) > 1) - (len(shape_b) > 1)]
    dy = builder.reshape(context.gradient, (*lead, matrix_a[-2], matrix_b[-1]))
    first, second = builder.reshape(a, matrix_a), builder.reshape(b, matrix_b)
    return context.each(
        lambda: builder.reshape(builder.sum_to(context.add("MatMul", dy, _swapped(context, second)), matrix_a), shape_a),
        lambda: builder.reshape(builder.sum_to(context.add("MatMul", _swapped(context, first), dy), matrix_b), shape_b),
    )


def gemm(context: GradientContext) -> Gradients:
    """alpha op(A) op(B) + beta C; the products of the gradient are Gemms too, so that nothing has to be transposed."""
    a, b = context.inputs[:2]
    dy = context.gradient
    alpha, beta = context.attribute_float("alpha", 1.0), context.attribute_float("beta", 1.0)
    flip_a, flip_b = context.attribute_int("transA", 0), context.attribute_int("transB", 0)

    def product(left: str, right: str, flip_left: int, flip_right: int) -> str:
        return context.add("Gemm", left, right, alpha=alpha, transA=flip_left, transB=flip_right)

    def of_a() -> str:
        return product(b, dy, flip_b, 1) if flip_a else product(dy, b, 0, 1 - flip_b)

    def of_b() -> str:
        return product(dy, a, 1, flip_a) if flip_b else product(a, dy, 1 - flip_a, 0)

    def of_c() -> str:
        total = context.sum_to(dy, 2)
        return total if beta == 1 else context.add("Mul", total, context.scalar(beta, total))

    return context.each(of_a, of_b, *([of_c] if context.has_input(2) else []))
