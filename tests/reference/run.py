"""The methods put together, a generation at a time, on noise that the caller hands in.

Methods: "cma" (Section 2.1 with the encoding of Section 4.1), "im" (Section 2.2), "im-box"
(Section 2.2 with the box constraint of Section 3), "margin" (Section 4).
"""

from collections.abc import Sequence
from dataclasses import dataclass

from . import bounds, cma, integer_mutation, margin
from .bounds import Bounds, Outcome
from .cma import Coordinates, Matrix, Vector
from .constants import constants
from .integer_mutation import Choices

METHODS = ("cma", "im", "im-box", "margin")


@dataclass(frozen=True)
class Noise:
    """All that is random in one generation.

    normal : lambda x N, the standard normal xi_i
    order : N uniforms; Step 1 of Section 2.2 puts J in ascending order of them
    geometric : lambda x N uniforms in (0, 1), for Step 4
    sign : lambda x N uniforms, for Steps 5 and 6: below 0.5 is plus
    """

    normal: Matrix
    order: Vector | None = None
    geometric: Matrix | None = None
    sign: Matrix | None = None


class Reference:
    """One run: `sample`, `encode`, `update`, and again.

    Parameters
    ----------
    method : "cma", "im", "im-box" or "margin"
    coordinates : one entry per coordinate; None for a continuous one, else its sorted values
    mean : the initial mean
    popsize : lambda; Table 1's if None
    alpha : the margin; 1/(N lambda) if None
    eigen_interval : the roots of C are taken anew in generations t = 0, e, 2e, ...
    limits : the bounds of each coordinate, by which candidates outside lose ranks; None if they do not, as in the paper

    The other keywords are the choices named in `integer_mutation.Choices`.
    """

    def __init__(
        self,
        method: str,
        coordinates: Coordinates,
        mean: Vector,
        popsize: int | None = None,
        *,
        alpha: float | None = None,
        eigen_interval: int = 1,
        limits: Sequence[Bounds] | None = None,
        geometric_start: int = 1,
        geometric_base: float = 0.7,
        sign_per: str = "coordinate",
        recall: str = "auto",
        recall_on: str = "all",
        negative_norm: str = "mutated",
        penalty_weight: float | None = None,
    ) -> None:
        if method not in METHODS:
            raise ValueError(f"method must be one of {METHODS}, got {method!r}")
        if len(coordinates) != len(mean):
            raise ValueError(f"{len(coordinates)} coordinates but a mean of {len(mean)}")
        self.method = method
        self.coordinates: list[Vector | None] = []
        for values in coordinates:
            self.coordinates.append(None if values is None else [float(z) for z in values])
        self.constants = constants(len(mean), popsize)
        if alpha is None:
            alpha = margin.default_alpha(len(mean), self.constants.popsize)
        self.alpha = alpha
        self.eigen_interval = eigen_interval
        self.limits = None if limits is None else list(limits)
        self.choices = Choices(
            geometric_start=geometric_start,
            geometric_base=geometric_base,
            sign_per=sign_per,
            recall=recall,
            recall_on=recall_on,
            negative_norm=negative_norm,
            penalty_weight=penalty_weight,
        )
        self.state = cma.initial_state(mean)
        self.y: Matrix = []  # y_i, unmutated and not transformed by A
        self.points: Matrix = []  # v_i of Section 4, mutated x_i of Section 2.2, x_i of Section 2.1
        self.last_best: Vector | None = None  # x_{1:lambda}^{(t-1)}

    @property
    def m(self) -> Vector:
        return self.state.m

    @property
    def sigma(self) -> float:
        return self.state.sigma

    @property
    def C(self) -> Matrix:
        return self.state.C

    @property
    def A(self) -> Vector:
        return self.state.A

    @property
    def p_sigma(self) -> Vector:
        return self.state.p_sigma

    @property
    def p_c(self) -> Vector:
        return self.state.p_c

    @property
    def t(self) -> int:
        return self.state.t

    def sample(self, noise: Noise) -> Matrix:
        """The lambda latent points that are encoded and evaluated."""
        s = self.state
        if s.t % self.eigen_interval == 0:
            s.root, s.inverse_root = cma.matrix_roots(s.C)

        self.y = []
        for i in range(self.constants.popsize):
            self.y.append(cma.sample_y(s.root, noise.normal[i]))

        self.points = []
        if self.method in ("im", "im-box"):
            if noise.order is None or noise.geometric is None or noise.sign is None:
                raise ValueError(f"{self.method!r} needs order, geometric and sign in the noise")
            r = integer_mutation.mutation_vectors(
                s.sigma,
                s.C,
                s.m,
                self.last_best,
                self.constants.popsize,
                self.coordinates,
                noise.order,
                noise.geometric,
                noise.sign,
                self.choices,
            )
            for i in range(self.constants.popsize):
                self.points.append(integer_mutation.sample_x(s.m, s.sigma, self.y[i], r[i], self.coordinates))
        elif self.method == "margin":
            for i in range(self.constants.popsize):
                self.points.append(margin.sample_v(s.m, s.sigma, s.A, self.y[i]))
        else:
            for i in range(self.constants.popsize):
                self.points.append(cma.sample_x(s.m, s.sigma, self.y[i]))
        return [list(point) for point in self.points]

    def encode(self, points: Matrix) -> Matrix:
        """Encoding_f of each point."""
        return [margin.encode(point, self.coordinates) for point in points]

    def penalties(self, points: Matrix) -> Vector:
        """The box penalty of each point: zero but for "im-box"."""
        result = []
        for point in points:
            if self.method == "im-box":
                result.append(integer_mutation.penalty(point, self.coordinates, self.choices))
            else:
                result.append(0.0)
        return result

    def update(self, values: Vector, violations: Vector | None = None) -> None:
        """One generation, from the lambda objective values (and violations) in the order of `sample`."""
        s = self.state
        k = self.constants

        # the points for the mean: x_i, which is mutated in Section 2.2 and not transformed by A
        # in Section 4
        x = self.points
        if self.method == "margin":
            x = []
            for i in range(k.popsize):
                x.append(cma.sample_x(s.m, s.sigma, self.y[i]))

        # ranks, by violation, then penalised value, and by the distance outside the bounds
        penalties = self.penalties(self.points)
        ranked: list[Outcome] = []
        for i in range(k.popsize):
            violation = 0.0 if violations is None else float(violations[i])
            ranked.append((violation, float(values[i]) + penalties[i]))
        if self.limits is not None:
            deviations = bounds.standard_deviations(s.sigma, s.A, s.C)
            ranked = bounds.penalised(ranked, self.points, self.limits, deviations)
        order = cma.ranking(ranked)
        x_sorted = [x[i] for i in order]
        y_sorted = [self.y[i] for i in order]
        w = cma.shared_weights([ranked[i] for i in order], k.w)

        # the vectors in the norm of the negative weights
        norm_vectors = y_sorted
        if self.method in ("im", "im-box") and self.choices.negative_norm == "mutated":
            norm_vectors = []
            for i in range(k.popsize):
                norm_vectors.append(integer_mutation.mutated_y(x_sorted[i], s.m, s.sigma))

        # Section 2.1, top to bottom
        new_m = cma.update_mean(s.m, k.c_m, w, x_sorted)
        y_w = cma.weighted_y(w, y_sorted)
        new_p_sigma = cma.update_p_sigma(s.p_sigma, s.inverse_root, y_w, k)
        h = cma.h_sigma(new_p_sigma, s.t, k)
        new_p_c = cma.update_p_c(s.p_c, h, y_w, k)
        w_deg = cma.w_circle(w, s.inverse_root, norm_vectors)
        new_C = cma.update_C(s.C, new_p_c, h, w_deg, y_sorted, k)

        # the step size, in Section 2.2 over the unmasked coordinates
        if self.method in ("im", "im-box"):
            masks = integer_mutation.mask(s.sigma, s.C, k.c_sigma, self.coordinates)
            length = integer_mutation.masked_length(masks, new_p_sigma)
            M = integer_mutation.unmasked_count(masks)
            new_sigma = s.sigma if M == 0 else cma.update_sigma(s.sigma, length, M, k)
        else:
            length = cma.euclidean_norm(new_p_sigma)
            new_sigma = cma.update_sigma(s.sigma, length, k.n, k)

        self.last_best = list(x_sorted[0])
        s.m, s.sigma, s.C = new_m, new_sigma, new_C
        s.p_sigma, s.p_c = new_p_sigma, new_p_c

        # Section 4.2, Step 5: with m, sigma and C of t + 1 and A of t
        if self.method == "margin":
            margin.correct(s, self.coordinates, self.alpha)
        s.t += 1
