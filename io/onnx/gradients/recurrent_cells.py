"""The backward pass of one direction of RNN, LSTM and GRU.

What the gates made is recomputed for all steps at once from the hidden states, and only what is really sequential is unrolled: the cell
states of LSTM (two nodes per step) and the gradients of the states (five to ten nodes per step). The factors between the gradients of a
step are computed for all steps at once, too.

Step t of the backward pass takes the gradients of the states after the step, `carry`, and returns those of the states before the step.
With sequence lengths, `mask` is 1 where a step is part of the sequence; past its end a state is passed on unchanged, and Y is 0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from ..build.gradient_context import GradientContext
from .cell_activations import Activation, one_minus


@dataclass(frozen=True, slots=True)
class Cell:
    """What a direction of a cell reads, all along the default layout: time first."""

    context: GradientContext
    steps: int
    hidden: int
    reverse: bool
    activations: Sequence[Activation]
    x: str
    """T x B x I."""
    y: str
    """T x B x H, the hidden states."""
    w: str
    """GH x I, where G is the number of gates."""
    r: str
    """GH x H."""
    biases: tuple[str, str] | None
    """For inputs and for hidden states, GH each."""
    first: str
    """The first hidden state, 1 x B x H."""
    before: str
    """T x B x H, the hidden state before each step."""
    mask: str | None
    """T x B x 1."""
    first_cell: str
    """LSTM: the first cell state, 1 x B x H."""
    peepholes: str | None
    """LSTM: 3H."""

    def add(self, operator: str, *inputs: str, **attributes: int) -> str:
        return self.context.add(operator, *inputs, **attributes)

    def with_before(self, before: str) -> Cell:
        return replace(self, before=before)

    def masked(self, value: str) -> str:
        return value if self.mask is None else self.add("Mul", value, self.mask)

    def passed_on(self, value: str) -> str:
        """1 where the state is passed on, else the value."""
        if self.mask is None:
            return value
        return self.add("Add", self.add("Mul", value, self.mask), one_minus(self.context, self.mask))

    def product(self, value: str, weights: str) -> str:
        """T x B x K times N x K, transposed."""
        return self.add("MatMul", value, self.context.builder.transpose(weights, (1, 0)))

    def biased(self, value: str, which: int) -> str:
        return value if self.biases is None else self.add("Add", value, self.biases[which])

    def split(self, value: str, parts: int, axis: int) -> tuple[str, ...]:
        if parts == 1:
            return (value,)
        return self.context.builder.add_several("Split", parts, value, axis=axis, num_outputs=parts)

    def by_step(self, value: str) -> tuple[str, ...]:
        return self.split(value, self.steps, 0)

    @property
    def order(self) -> range:
        """The steps in the order in which they are computed."""
        return range(self.steps - 1, -1, -1) if self.reverse else range(self.steps)

    def joined(self, values: Sequence[str]) -> str:
        """One value per step, by time, as one tensor."""
        return values[0] if len(values) == 1 else self.add("Concat", *values, axis=0)

    def before_each(self, first: str, after: str) -> str:
        """The state before each step, from the first state and the states after each step."""
        if self.steps == 1:
            return first
        builder = self.context.builder
        if self.reverse:
            return self.add("Concat", builder.slice(after, [1], [self.steps], [0]), first, axis=0)
        return self.add("Concat", first, builder.slice(after, [0], [self.steps - 1], [0]), axis=0)

    def weight_gradient(self, gradient: str, value: str) -> str:
        """Sum over steps and batch of the outer products: N x K from T x B x N and T x B x K."""
        flat = (self.add("Reshape", tensor, self.context.integers([-1, self.context.size(tensor, 2)])) for tensor in (gradient, value))
        left, right = flat
        return self.add("MatMul", self.context.builder.transpose(left, (1, 0)), right)

    def summed(self, gradient: str) -> str:
        """Over steps and batch."""
        return self.context.builder.sum_over(gradient, [0, 1])


@dataclass(frozen=True, slots=True)
class CellGradients:
    """The gradients of one direction."""

    inputs: str
    """T x B x GH: of what the inputs contribute to the gates."""
    recurrent: str
    """GH x H: of the recurrent weights."""
    biases: tuple[str, str]
    first: str
    first_cell: str | None = None
    peepholes: str | None = None


Arriving = Callable[[int, str | None], str]
"""The gradient of the hidden state after a step, from the step and the carried gradient."""

CellFunction = Callable[[Cell, Arriving, str | None, str | None], CellGradients]
"""From a cell and the gradients that arrive at it: at each step, at the last hidden state, at the last cell state."""


def rnn_cell(cell: Cell, arriving: Arriving, carry: str | None, carry_cell: str | None) -> CellGradients:
    """h = f(x W + h' R + b)."""
    slopes = cell.by_step(cell.masked(cell.activations[0].slope(cell.context, cell.y)))
    kept = None if cell.mask is None else cell.by_step(one_minus(cell.context, cell.mask))
    made = [""] * cell.steps
    for step in reversed(cell.order):
        total = arriving(step, carry)
        made[step] = cell.add("Mul", total, slopes[step])
        carry = cell.add("MatMul", made[step], cell.r)
        if kept is not None:
            carry = cell.add("Add", carry, cell.add("Mul", total, kept[step]))
    gradient = cell.joined(made)
    total = cell.summed(gradient)
    assert carry is not None
    return CellGradients(gradient, cell.weight_gradient(gradient, cell.before), (total, total), carry)


def lstm_cell(cell: Cell, arriving: Arriving, carry: str | None, carry_cell: str | None) -> CellGradients:
    """i, o, f = F(...), g = G(...), c = f c' + i g, h = o H(c). Gates are stored in the order i, o, f, g."""
    context, (gate, update, output) = cell.context, cell.activations
    sums = cell.biased(cell.biased(cell.add("Add", cell.product(cell.x, cell.w), cell.product(cell.before, cell.r)), 0), 1)
    sum_i, sum_o, sum_f, sum_g = cell.split(sums, 4, 2)
    g = update.apply(context, sum_g)
    p_i, p_o, p_f = (None, None, None) if cell.peepholes is None else cell.split(cell.peepholes, 3, 0)
    before, after = _cell_states(cell, (sum_i, sum_f), g, (p_i, p_f))
    i, f = gate.apply(context, _peeped(cell, sum_i, p_i, before)), gate.apply(context, _peeped(cell, sum_f, p_f, before))
    o = gate.apply(context, _peeped(cell, sum_o, p_o, after))
    squashed = output.apply(context, after)
    # By how much the gradient of the hidden (h) or cell state (c) is multiplied to give that of each gate.
    to_i = cell.masked(cell.add("Mul", g, gate.slope(context, i)))
    to_o = cell.masked(cell.add("Mul", squashed, gate.slope(context, o)))
    to_f = cell.masked(cell.add("Mul", before, gate.slope(context, f)))
    to_g = cell.masked(cell.add("Mul", i, update.slope(context, g)))
    h_to_c = cell.masked(cell.add("Mul", o, output.slope(context, squashed)))
    c_to_c = cell.passed_on(f)
    if p_i is not None and p_o is not None and p_f is not None:
        h_to_c = cell.add("Add", h_to_c, cell.add("Mul", to_o, p_o))
        through_gates = cell.add("Add", cell.add("Mul", to_i, p_i), cell.add("Mul", to_f, p_f))
        c_to_c = cell.add("Add", c_to_c, through_gates)
    to_gates = cell.by_step(cell.add("Concat", to_i, to_o, to_f, to_g, axis=2))
    h_to_cs, c_to_cs = cell.by_step(h_to_c), cell.by_step(c_to_c)
    kept = None if cell.mask is None else cell.by_step(one_minus(context, cell.mask))
    made = [""] * cell.steps
    for step in reversed(cell.order):
        hidden = arriving(step, carry)
        state = cell.add("Mul", hidden, h_to_cs[step])
        state = state if carry_cell is None else cell.add("Add", state, carry_cell)
        made[step] = cell.add("Mul", cell.add("Concat", state, hidden, state, state, axis=2), to_gates[step])
        carry = cell.add("MatMul", made[step], cell.r)
        if kept is not None:
            carry = cell.add("Add", carry, cell.add("Mul", hidden, kept[step]))
        carry_cell = cell.add("Mul", state, c_to_cs[step])
    gradient = cell.joined(made)
    total = cell.summed(gradient)
    peepholes = None
    if cell.peepholes is not None:
        d_i, d_o, d_f, _ = cell.split(gradient, 4, 2)
        parts = (cell.summed(cell.add("Mul", left, right)) for left, right in ((d_i, before), (d_o, after), (d_f, before)))
        peepholes = cell.add("Concat", *parts, axis=0)
    assert carry is not None
    return CellGradients(gradient, cell.weight_gradient(gradient, cell.before), (total, total), carry, carry_cell, peepholes)


def _cell_states(cell: Cell, sums: tuple[str, str], g: str, peepholes: tuple[str | None, str | None]) -> tuple[str, str]:
    """The cell states before and after each step."""
    context, gate = cell.context, cell.activations[0]
    state = cell.first_cell
    before, after = [""] * cell.steps, [""] * cell.steps
    if peepholes[0] is None:
        i, f = (gate.apply(context, value) for value in sums)
        kept, new = cell.by_step(cell.passed_on(f)), cell.by_step(cell.masked(cell.add("Mul", i, g)))
        for step in cell.order:
            before[step] = state
            state = after[step] = cell.add("Add", cell.add("Mul", kept[step], state), new[step])
    else:
        sums_i, sums_f, updates = (cell.by_step(value) for value in (*sums, g))
        masks = None if cell.mask is None else cell.by_step(cell.mask)
        for step in cell.order:
            before[step] = state
            i = gate.apply(context, _peeped(cell, sums_i[step], peepholes[0], state))
            f = gate.apply(context, _peeped(cell, sums_f[step], peepholes[1], state))
            new_state = cell.add("Add", cell.add("Mul", f, state), cell.add("Mul", i, updates[step]))
            if masks is not None:
                change = cell.add("Mul", cell.add("Sub", new_state, state), masks[step])
                new_state = cell.add("Add", state, change)
            state = after[step] = new_state
    return cell.joined(before), cell.joined(after)


def _peeped(cell: Cell, value: str, peephole: str | None, state: str) -> str:
    return value if peephole is None else cell.add("Add", value, cell.add("Mul", state, peephole))


def gru_cell_linear_before_reset(cell: Cell, arriving: Arriving, carry: str | None, carry_cell: str | None) -> CellGradients:
    """z, r = F(...), q = h' R + b, n = G(x W + b + r q), h = (1 - z) n + z h'. Gates are stored in the order z, r, n."""
    context, (gate, update) = cell.context, cell.activations
    x_z, x_r, x_n = cell.split(cell.biased(cell.product(cell.x, cell.w), 0), 3, 2)
    h_z, h_r, q = cell.split(cell.biased(cell.product(cell.before, cell.r), 1), 3, 2)
    z, r = gate.apply(context, cell.add("Add", x_z, h_z)), gate.apply(context, cell.add("Add", x_r, h_r))
    n = update.apply(context, cell.add("Add", x_n, cell.add("Mul", r, q)))
    to_n = cell.masked(cell.add("Mul", one_minus(context, z), update.slope(context, n)))
    to_z = cell.masked(cell.add("Mul", cell.add("Sub", cell.before, n), gate.slope(context, z)))
    to_r = cell.add("Mul", to_n, cell.add("Mul", q, gate.slope(context, r)))
    to_q = cell.add("Mul", to_n, r)
    to_gates, to_before = cell.by_step(cell.add("Concat", to_z, to_r, to_q, axis=2)), cell.by_step(cell.passed_on(z))
    totals, made = [""] * cell.steps, [""] * cell.steps
    for step in reversed(cell.order):
        totals[step] = hidden = arriving(step, carry)
        made[step] = cell.add("Mul", cell.add("Concat", hidden, hidden, hidden, axis=2), to_gates[step])
        carry = cell.add("Add", cell.add("MatMul", made[step], cell.r), cell.add("Mul", hidden, to_before[step]))
    recurrent = cell.joined(made)
    d_z, d_r, _ = cell.split(recurrent, 3, 2)
    gradient = cell.add("Concat", d_z, d_r, cell.add("Mul", cell.joined(totals), to_n), axis=2)
    assert carry is not None
    biases = (cell.summed(gradient), cell.summed(recurrent))
    return CellGradients(gradient, cell.weight_gradient(recurrent, cell.before), biases, carry)


def gru_cell(cell: Cell, arriving: Arriving, carry: str | None, carry_cell: str | None) -> CellGradients:
    """As above, but n = G(x W + b + (r h') R)."""
    context, (gate, update) = cell.context, cell.activations
    builder, size = context.builder, cell.hidden
    r_gates, r_update = builder.slice(cell.r, [0], [2 * size], [0]), builder.slice(cell.r, [2 * size], [3 * size], [0])
    x_z, x_r, x_n = cell.split(cell.biased(cell.biased(cell.product(cell.x, cell.w), 0), 1), 3, 2)
    h_z, h_r = cell.split(cell.product(cell.before, r_gates), 2, 2)
    z, r = gate.apply(context, cell.add("Add", x_z, h_z)), gate.apply(context, cell.add("Add", x_r, h_r))
    reset = cell.add("Mul", r, cell.before)
    n = update.apply(context, cell.add("Add", x_n, cell.product(reset, r_update)))
    to_n = cell.by_step(cell.masked(cell.add("Mul", one_minus(context, z), update.slope(context, n))))
    to_z = cell.by_step(cell.masked(cell.add("Mul", cell.add("Sub", cell.before, n), gate.slope(context, z))))
    to_r = cell.by_step(cell.add("Mul", cell.before, gate.slope(context, r)))
    resets, to_before = cell.by_step(r), cell.by_step(cell.passed_on(z))
    gates, updates = [""] * cell.steps, [""] * cell.steps
    for step in reversed(cell.order):
        hidden = arriving(step, carry)
        updates[step] = cell.add("Mul", hidden, to_n[step])
        of_reset = cell.add("MatMul", updates[step], r_update)
        gates[step] = cell.add("Concat", cell.add("Mul", hidden, to_z[step]), cell.add("Mul", of_reset, to_r[step]), axis=2)
        through = cell.add("Add", cell.add("Mul", hidden, to_before[step]), cell.add("Mul", of_reset, resets[step]))
        carry = cell.add("Add", through, cell.add("MatMul", gates[step], r_gates))
    of_gates, of_update = cell.joined(gates), cell.joined(updates)
    gradient = cell.add("Concat", of_gates, of_update, axis=2)
    recurrent = cell.add("Concat", cell.weight_gradient(of_gates, cell.before), cell.weight_gradient(of_update, reset), axis=0)
    total = cell.summed(gradient)
    assert carry is not None
    return CellGradients(gradient, recurrent, (total, total), carry)
