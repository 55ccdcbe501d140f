"""Gradients of RNN, LSTM and GRU, unrolled over time. The forward node stays one node; its output Y has all hidden states."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..build.gradient_context import GradientContext, Gradients
from .cell_activations import Activation, cell_activations, one_minus
from .recurrent_cells import Arriving, Cell, CellFunction, CellGradients, gru_cell, gru_cell_linear_before_reset, lstm_cell, rnn_cell

_X, _W, _R, _B, _LENGTHS, _INITIAL_H, _INITIAL_C, _PEEPHOLES = range(8)
_BATCH_FIRST = {_X: (1, 0, 2), _INITIAL_H: (1, 0, 2), _INITIAL_C: (1, 0, 2)}
"""With layout=1, how these inputs are transposed to the default layout; the inverse is the same."""


def rnn(context: GradientContext) -> Gradients:
    return _differentiated(context, ("Tanh",), rnn_cell)


def lstm(context: GradientContext) -> Gradients:
    if context.attribute_int("input_forget", 0):
        raise context.refusal("it couples its input and forget gates (input_forget=1)")
    return _differentiated(context, ("Sigmoid", "Tanh", "Tanh"), lstm_cell)


def gru(context: GradientContext) -> Gradients:
    cell = gru_cell_linear_before_reset if context.attribute_int("linear_before_reset", 0) else gru_cell
    return _differentiated(context, ("Sigmoid", "Tanh"), cell)


def _differentiated(context: GradientContext, defaults: Sequence[str], function: CellFunction) -> Gradients:
    """Each direction by itself; then the gradients of the inputs are put together."""
    if context.attribute_float("clip", 0.0):
        raise context.refusal("it clips its gates (attribute clip): remove the attribute, or export the model without it")
    direction = context.attribute_text("direction", "forward")
    flags = {"forward": [False], "reverse": [True], "bidirectional": [False, True]}.get(direction)
    if flags is None:
        raise context.refusal(f"its direction is {direction!r}")
    batch_first = context.attribute_int("layout", 0) == 1
    activations = cell_activations(context, defaults, len(flags))
    shared = _Shared(context, batch_first, len(flags))
    cells = [shared.cell(number, reverse, activations[number]) for number, reverse in enumerate(flags)]
    found = [function(cell, *shared.arriving(cell, number)) for number, cell in enumerate(cells)]
    return shared.gradients(cells, found)


class _Shared:
    """The inputs and outputs of the node, for all directions."""

    def __init__(self, context: GradientContext, batch_first: bool, directions: int) -> None:
        self._context = context
        self._batch_first = batch_first
        self._directions = directions
        self.x = self._time_first(context.inputs[_X], (1, 0, 2))
        self.steps = context.size(self.x, 0)
        self.hidden = context.size(context.inputs[_R], 2)
        if self.steps == 0:
            raise context.refusal("its sequence is empty")
        self.y = self._time_first(context.extra_output(0), (1, 2, 0, 3))
        self.mask = self._mask()

    def _time_first(self, value: str, order: Sequence[int]) -> str:
        return self._context.builder.transpose(value, order) if self._batch_first else value

    def _mask(self) -> str | None:
        """T x B x 1, from the sequence lengths; None if all are the full length."""
        context = self._context
        if not context.has_input(_LENGTHS):
            return None
        lengths = context.inputs[_LENGTHS]
        numbers = context.numbers(lengths)
        if numbers is not None and (numbers >= self.steps).all():
            return None
        steps = context.builder.array(np.arange(self.steps, dtype=np.int32).reshape(-1, 1, 1), "steps")
        inside = context.add("Less", steps, context.add("Unsqueeze", lengths, context.integers([1])))
        return context.as_float(inside, self.x)

    def _part(self, value: str, number: int, axis: int = 0) -> str:
        """What belongs to one direction, without the axis of the directions."""
        context = self._context
        if self._directions == 1:
            return context.add("Squeeze", value, context.integers([axis]))
        return context.add("Gather", value, context.builder.integer(number), axis=axis)

    def _state(self, index: int, number: int, like: str) -> str:
        """The first state of one direction, 1 x B x H."""
        context = self._context
        if not context.has_input(index):
            return context.builder.zeros((1, *context.shape(like)[1:]), context.element(like), like)
        return self._slice(self._time_first(context.inputs[index], _BATCH_FIRST[index]), number)

    def _slice(self, value: str, number: int) -> str:
        return value if self._directions == 1 else self._context.builder.slice(value, [number], [number + 1], [0])

    def cell(self, number: int, reverse: bool, activations: Sequence[Activation]) -> Cell:
        context = self._context
        y = self._part(self.y, number, 1)
        biases = None
        if context.has_input(_B):
            first, second = context.builder.add_several("Split", 2, self._part(context.inputs[_B], number), axis=0, num_outputs=2)
            biases = (first, second)
        first_state = self._state(_INITIAL_H, number, y)
        is_lstm = context.node.op_type == "LSTM"
        cell = Cell(
            context=context,
            steps=self.steps,
            hidden=self.hidden,
            reverse=reverse,
            activations=activations,
            x=self.x,
            y=y,
            w=self._part(context.inputs[_W], number),
            r=self._part(context.inputs[_R], number),
            biases=biases,
            first=first_state,
            before="",
            mask=self.mask,
            first_cell=self._state(_INITIAL_C, number, y) if is_lstm else "",
            peepholes=self._part(context.inputs[_PEEPHOLES], number) if is_lstm and context.has_input(_PEEPHOLES) else None,
        )
        return cell.with_before(self._states(cell))

    def _states(self, cell: Cell) -> str:
        """The states after each step are Y, except that a reversed sequence begins at its end, before which Y is 0."""
        states = cell.y
        if cell.reverse and cell.mask is not None and self._context.has_input(_INITIAL_H):
            outside = cell.add("Mul", one_minus(self._context, cell.mask), cell.first)
            states = cell.add("Add", states, outside)
        return cell.before_each(cell.first, states)

    def arriving(self, cell: Cell, number: int) -> tuple[Arriving, str | None, str | None]:
        """The gradients that arrive at one direction: of the hidden states, of the last one, and of the last cell state."""
        context = self._context
        of_y = context.gradients[0] if context.gradients else None
        parts: tuple[str, ...] | None = None
        if of_y is not None:
            parts = cell.by_step(cell.masked(self._part(self._time_first(of_y, (1, 2, 0, 3)), number, 1)))

        def arriving(step: int, carry: str | None) -> str:
            if parts is None:
                like = cell.first
                return context.builder.zeros(context.shape(like), context.element(like), like) if carry is None else carry
            return parts[step] if carry is None else context.add("Add", parts[step], carry)

        return arriving, self._last(1, number), self._last(2, number)

    def _last(self, output: int, number: int) -> str | None:
        gradient = self._context.gradients[output] if output < len(self._context.gradients) else None
        return None if gradient is None else self._slice(self._time_first(gradient, (1, 0, 2)), number)

    def gradients(self, cells: Sequence[Cell], found: Sequence[CellGradients]) -> Gradients:
        context = self._context

        def of_x() -> str:
            parts = [cell.add("MatMul", made.inputs, cell.w) for cell, made in zip(cells, found, strict=True)]
            total = parts[0] if len(parts) == 1 else context.add("Add", *parts)
            return self._time_first(total, _BATCH_FIRST[_X])

        def of_w() -> str:
            return self._stacked([cell.weight_gradient(made.inputs, cell.x) for cell, made in zip(cells, found, strict=True)])

        def of_b() -> str:
            return self._stacked([context.add("Concat", *made.biases, axis=0) for made in found])

        return context.each(
            of_x,
            of_w,
            lambda: self._stacked([made.recurrent for made in found]),
            of_b,
            context.never,
            lambda: self._first_states([made.first for made in found]),
            lambda: self._first_states([made.first_cell or "" for made in found]),
            lambda: self._stacked([made.peepholes or "" for made in found]),
        )

    def _stacked(self, parts: Sequence[str]) -> str:
        context = self._context
        wide = [context.add("Unsqueeze", part, context.integers([0])) for part in parts]
        return wide[0] if len(wide) == 1 else context.add("Concat", *wide, axis=0)

    def _first_states(self, parts: Sequence[str]) -> str:
        joined = parts[0] if len(parts) == 1 else self._context.add("Concat", *parts, axis=0)
        return self._time_first(joined, _BATCH_FIRST[_INITIAL_H])
