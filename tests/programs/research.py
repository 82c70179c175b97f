"""Programs as researchers write them, each a function of the framework that returns its figures."""

from __future__ import annotations

import importlib
import itertools
import math
from collections.abc import Callable
from typing import Any

PROGRAMS: dict[str, Callable[[Any], list[Any]]] = {}


def program(function: Callable[[Any], list[Any]]) -> Callable[[Any], list[Any]]:
    PROGRAMS[function.__name__] = function
    return function


def mlp(torch: Any, *widths: int, act: str = "Tanh") -> Any:
    nn = torch.nn
    layers: list[Any] = []
    for a, b in itertools.pairwise(widths):
        layers += [nn.Linear(a, b), getattr(nn, act)()]
    return nn.Sequential(*layers[:-1])


@program
def maml(torch: Any) -> list[Any]:
    """Model-agnostic meta-learning of sine waves (Finn et al., 2017), through its inner steps."""
    torch.manual_seed(0)
    net = mlp(torch, 1, 16, 16, 1)
    meta = torch.optim.Adam(net.parameters(), lr=1e-2)
    figures = []
    for _ in range(6):
        meta.zero_grad()
        total = 0.0
        for _task in range(3):
            amplitude, phase = torch.rand(1) * 4 + 1, torch.rand(1) * math.pi
            x = torch.rand(10, 1) * 10 - 5
            y = amplitude * torch.sin(x + phase)
            fast = dict(net.named_parameters())
            for _step in range(2):
                out = torch.func.functional_call(net, fast, (x[:5],))
                loss = ((out - y[:5]) ** 2).mean()
                grads = torch.autograd.grad(loss, list(fast.values()), create_graph=True)
                fast = {k: p - 0.05 * g for (k, p), g in zip(fast.items(), grads, strict=True)}
            loss = torch.nn.functional.mse_loss(torch.func.functional_call(net, fast, (x[5:],)), y[5:])
            loss.backward()
            total += loss.item()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        meta.step()
        figures.append(total)
    return figures


@program
def gradient_penalty(torch: Any) -> list[Any]:
    """WGAN-GP (Gulrajani et al., 2017): a critic trained with the norm of its gradient."""
    torch.manual_seed(1)
    critic = mlp(torch, 2, 32, 32, 1, act="LeakyReLU")
    generator = mlp(torch, 3, 16, 2, act="ReLU")
    opt_d = torch.optim.RMSprop(critic.parameters(), lr=1e-3)
    opt_g = torch.optim.Adam(generator.parameters(), lr=1e-3, betas=(0.0, 0.9))
    figures = []
    for _ in range(5):
        real = torch.randn(16, 2) * 0.3 + torch.tensor([1.0, -1.0])
        fake = generator(torch.randn(16, 3))
        alpha = torch.rand(16, 1)
        mixed = (alpha * real + (1 - alpha) * fake.detach()).requires_grad_()
        (slope,) = torch.autograd.grad(critic(mixed).sum(), mixed, create_graph=True)
        penalty = ((slope.norm(2, dim=1) - 1) ** 2).mean()
        loss = critic(fake.detach()).mean() - critic(real).mean() + 10 * penalty
        opt_d.zero_grad(set_to_none=True)
        loss.backward()
        opt_d.step()
        opt_g.zero_grad()
        (-critic(generator(torch.randn(16, 3))).mean()).backward()
        opt_g.step()
        figures += [loss.item(), penalty.item()]
    return figures


@program
def physics_informed(torch: Any) -> list[Any]:
    """A physics-informed network for the heat equation (Raissi et al., 2019), with second derivatives by autograd."""
    torch.manual_seed(2)
    net = mlp(torch, 2, 20, 20, 1).double()
    optimizer = torch.optim.LBFGS(net.parameters(), max_iter=5, line_search_fn="strong_wolfe")
    xt = torch.rand(40, 2, dtype=torch.float64, requires_grad=True)
    start = torch.stack([torch.linspace(0, 1, 11, dtype=torch.float64), torch.zeros(11, dtype=torch.float64)], 1)
    figures = []

    def closure() -> Any:
        optimizer.zero_grad()
        u = net(xt)
        du = torch.autograd.grad(u, xt, torch.ones_like(u), create_graph=True)[0]
        d2u = torch.autograd.grad(du[:, 0].sum(), xt, create_graph=True)[0][:, 0]
        residual = (du[:, 1] - 0.1 * d2u).pow(2).mean()
        initial = (net(start).squeeze(1) - torch.sin(math.pi * start[:, 0])).square().mean()
        loss = residual + initial
        loss.backward()
        figures.append(loss.item())
        return loss

    for _ in range(3):
        optimizer.step(closure)
    return figures[:10]


@program
def tangent_kernel(torch: Any) -> list[Any]:
    """The empirical neural tangent kernel by vmap over jacrev, and by products with jvp and vjp."""
    from functools import partial

    func = torch.func
    torch.manual_seed(3)
    net = torch.nn.Sequential(torch.nn.Conv2d(1, 3, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(48, 2))
    params = {k: v.detach() for k, v in net.named_parameters()}
    x1, x2 = torch.randn(4, 1, 6, 6), torch.randn(3, 1, 6, 6)

    def single(params: Any, x: Any) -> Any:
        return func.functional_call(net, params, (x.unsqueeze(0),)).squeeze(0)

    jac = [func.vmap(func.jacrev(single), (None, 0))(params, x).values() for x in (x1, x2)]
    jac1, jac2 = ([j.flatten(2) for j in js] for js in jac)
    kernel = torch.stack([torch.einsum("Naf,Mbf->NMab", a, b) for a, b in zip(jac1, jac2, strict=True)]).sum(0)

    def entry(a: Any, b: Any) -> Any:
        out, pull = func.vjp(partial(single, x=a), params)

        def push(v: Any) -> Any:
            (tangent,) = pull(v)
            return func.jvp(lambda p: single(p, b), (params,), (tangent,))[1]

        return func.vmap(push)(torch.eye(out.numel()))

    other = func.vmap(func.vmap(entry, (None, 0)), (0, None))(x1, x2)
    return [kernel, other]


@program
def per_sample_gradients(torch: Any) -> list[Any]:
    """DP-SGD (Abadi et al., 2016): gradients of each example, clipped, summed and noised."""
    func = torch.func
    torch.manual_seed(4)
    net = torch.nn.Sequential(
        torch.nn.Conv2d(1, 4, 3, stride=2),
        torch.nn.GroupNorm(2, 4),
        torch.nn.ReLU(),
        torch.nn.Flatten(),
        torch.nn.Linear(36, 3),
    )
    params = dict(net.named_parameters())
    x, y = torch.randn(8, 1, 8, 8), torch.randint(0, 3, (8,))

    def loss(params: Any, x: Any, y: Any) -> Any:
        out = func.functional_call(net, params, (x.unsqueeze(0),))
        return torch.nn.functional.cross_entropy(out, y.unsqueeze(0))

    grads, losses = func.vmap(func.grad_and_value(loss), in_dims=(None, 0, 0))(params, x, y)
    norms = torch.stack([g.flatten(1).norm(dim=1) for g in grads.values()], 1).norm(dim=1)
    scale = (1.0 / (norms + 1e-6)).clamp(max=1.0)
    noised = {k: torch.einsum("n,n...->...", scale, g) + 0.1 * torch.randn(g.shape[1:]) for k, g in grads.items()}
    return [losses, norms, *noised.values()]


@program
def implicit_layer(torch: Any) -> list[Any]:
    """A deep equilibrium layer (Bai et al., 2019): the gradient of a fixed point from a hook that solves for it."""
    torch.manual_seed(5)
    cell = torch.nn.Linear(6, 6).double()
    with torch.no_grad():
        cell.weight.mul_(0.5)
    x = torch.randn(4, 6, dtype=torch.float64, requires_grad=True)

    def f(z: Any) -> Any:
        return torch.tanh(cell(z) + x)

    with torch.no_grad():
        z = torch.zeros_like(x)
        for _ in range(60):
            z = f(z)
    z = f(z)
    z0 = z.clone().detach().requires_grad_()
    f0 = f(z0)

    def backward_hook(grad: Any) -> Any:
        g = grad
        for _ in range(60):
            g = torch.autograd.grad(f0, z0, g, retain_graph=True)[0] + grad
        return g

    z.register_hook(backward_hook)
    (z**2).sum().backward()
    return [z.detach(), x.grad, cell.weight.grad, cell.bias.grad]


@program
def neural_ode(torch: Any) -> list[Any]:
    """A neural ODE (Chen et al., 2018): an adjoint as an autograd.Function beside the gradient through the solver."""
    torch.manual_seed(6)
    field = mlp(torch, 3, 12, 3).double()
    params = tuple(field.parameters())

    def step(z: Any, h: float) -> Any:
        k1 = field(z)
        k2 = field(z + h / 2 * k1)
        k3 = field(z + h / 2 * k2)
        k4 = field(z + h * k3)
        return z + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)

    class Solve(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, z: Any, n: int, h: float, *params: Any) -> Any:
            states = [z]
            with torch.no_grad():
                for _ in range(n):
                    states.append(step(states[-1], h))
            ctx.h = h
            ctx.save_for_backward(*states)
            return states[-1].clone()

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx: Any, grad: Any) -> Any:
            total = [torch.zeros_like(p) for p in params]
            for z in reversed(ctx.saved_tensors[:-1]):
                with torch.enable_grad():
                    z = z.detach().requires_grad_()
                    out = step(z, ctx.h)
                grad, *rest = torch.autograd.grad(out, (z, *params), grad)
                total = [t + r for t, r in zip(total, rest, strict=True)]
            return (grad, None, None, *total)

    z0 = torch.randn(2, 3, dtype=torch.float64, requires_grad=True)
    a = Solve.apply(z0, 8, 0.1, *params).square().sum()
    first = torch.autograd.grad(a, (z0, *params))
    z = z0
    for _ in range(8):
        z = step(z, 0.1)
    second = torch.autograd.grad(z.square().sum(), (z0, *params))
    assert all(torch.allclose(p, q) for p, q in zip(first, second, strict=True))
    return [a, *first]


@program
def hypergradient(torch: Any) -> list[Any]:
    """A learning rate and weight decay learnt by the gradient through a run of training (Maclaurin et al., 2015)."""
    torch.manual_seed(7)
    x, y = torch.randn(20, 3), torch.randn(20)
    log_rate = torch.tensor(-2.0, requires_grad=True)
    decay = torch.tensor(0.1, requires_grad=True)
    w = torch.zeros(3, requires_grad=True)
    v = torch.zeros(3)
    for _ in range(10):
        loss = (x[:10] @ w - y[:10]).pow(2).mean() + decay * w.dot(w)
        (g,) = torch.autograd.grad(loss, w, create_graph=True)
        v = 0.9 * v + g
        w = w - log_rate.exp() * v
    test = (x[10:] @ w - y[10:]).pow(2).mean()
    return [test, *torch.autograd.grad(test, (log_rate, decay))]


@program
def gauss_newton(torch: Any) -> list[Any]:
    """Levenberg-Marquardt with jacfwd, and the Laplace approximation's determinant from the Hessian."""
    func = torch.func
    torch.manual_seed(8)
    t = torch.linspace(0, 2, 15, dtype=torch.float64)
    data = 2.5 * torch.exp(-1.3 * t) + 0.5 + 0.01 * torch.randn(15, dtype=torch.float64)

    def residual(p: Any) -> Any:
        return p[0] * torch.exp(-p[1] * t) + p[2] - data

    p = torch.tensor([1.0, 1.0, 0.0], dtype=torch.float64)
    for _ in range(6):
        j, r = func.jacfwd(residual)(p), residual(p)
        p = p - torch.linalg.solve(j.T @ j + 1e-3 * torch.eye(3, dtype=torch.float64), j.T @ r)
    h = func.hessian(lambda p: 0.5 * residual(p).square().sum() / 0.01**2)(p)
    return [p, h, torch.linalg.slogdet(h).logabsdet, torch.autograd.functional.hessian(lambda q: residual(q).sum(), p)]


@program
def hessian_vector_power(torch: Any) -> list[Any]:
    """The largest eigenvalue of a loss's Hessian by power iteration, with double backward and forward over reverse."""
    func = torch.func
    torch.manual_seed(9)
    net = mlp(torch, 4, 8, 3, act="GELU").double()
    x, y = torch.randn(12, 4).double(), torch.randint(0, 3, (12,))
    params = tuple(net.parameters())
    v = [torch.ones_like(p) for p in params]
    for _ in range(8):
        loss = torch.nn.functional.cross_entropy(net(x), y, label_smoothing=0.1)
        grads = torch.autograd.grad(loss, params, create_graph=True)
        hv = torch.autograd.grad(grads, params, grad_outputs=v)
        size = torch.sqrt(sum(h.square().sum() for h in hv))
        v = [h / size for h in hv]
    named = {k: p.detach() for k, p in net.named_parameters()}

    def loss_of(p: Any) -> Any:
        return torch.nn.functional.cross_entropy(func.functional_call(net, p, (x,)), y, label_smoothing=0.1)

    _, hv2 = func.jvp(func.grad(loss_of), (named,), (dict(zip(named, v, strict=True)),))
    return [size, *v, *hv2.values()]


@program
def policy_gradient(torch: Any) -> list[Any]:
    """REINFORCE with a baseline and an entropy bonus on a small chain (Williams, 1992)."""
    torch.manual_seed(10)
    policy, value = mlp(torch, 5, 16, 2), mlp(torch, 5, 16, 1)
    optimizer = torch.optim.AdamW(
        [{"params": policy.parameters()}, {"params": value.parameters(), "lr": 1e-2}], lr=3e-3
    )
    figures = []
    for _ in range(4):
        state, states, actions, rewards = 2, [], [], []
        for _t in range(12):
            s = torch.nn.functional.one_hot(torch.tensor(state), 5).to(torch.get_default_dtype())
            action = torch.multinomial(policy(s).softmax(-1), 1).item()
            states.append(s)
            actions.append(action)
            state = max(0, min(4, state + (1 if action else -1)))
            rewards.append(float(state == 4))
        returns = torch.tensor(rewards).flip(0).mul(0.9 ** torch.arange(12.0).flip(0)).cumsum(0).flip(0)
        batch = torch.stack(states)
        logp = policy(batch).log_softmax(-1)
        entropy = -(logp.exp() * logp).sum(-1).mean()
        advantage = returns - value(batch).squeeze(-1)
        chosen = logp.gather(1, torch.tensor(actions).unsqueeze(1)).squeeze(1)
        loss = -(chosen * advantage.detach()).mean() + advantage.pow(2).mean() - 0.01 * entropy
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        figures += [loss.item(), entropy.item(), sum(actions)]
    return figures


@program
def sinkhorn(torch: Any) -> list[Any]:
    """Entropic optimal transport (Cuturi, 2013) in logarithms, and its gradient in the points."""
    torch.manual_seed(11)
    x, y = torch.randn(7, 2, requires_grad=True), torch.randn(9, 2) + 1
    cost = torch.cdist(x, y).pow(2)
    f, g = torch.zeros(7), torch.zeros(9)
    eps = 0.5
    for _ in range(30):
        f = -eps * torch.logsumexp((g - cost) / eps - math.log(9), dim=1)
        g = -eps * torch.logsumexp((f[:, None] - cost) / eps - math.log(7), dim=0)
    plan = torch.exp((f[:, None] + g - cost) / eps) / 63
    total = (plan * cost).sum()
    total.backward()
    return [total, plan.sum(0), x.grad]


@program
def gaussian_process(torch: Any) -> list[Any]:
    """Hyperparameters of a Gaussian process by its marginal likelihood (Rasmussen & Williams, 2006)."""
    torch.manual_seed(12)
    x = torch.linspace(0, 5, 20, dtype=torch.float64)
    y = torch.sin(x) + 0.1 * torch.randn(20, dtype=torch.float64)
    log = torch.nn.Parameter(torch.tensor([0.0, 0.0, -2.0], dtype=torch.float64))
    optimizer = torch.optim.Adam([log], lr=0.1)
    figures = []
    for _ in range(10):
        scale, length, noise = log.exp()
        k = scale * torch.exp(-0.5 * ((x[:, None] - x) / length) ** 2) + (noise + 1e-6) * torch.eye(20).double()
        chol = torch.linalg.cholesky(k)
        alpha = torch.cholesky_solve(y[:, None], chol)[:, 0]
        loss = 0.5 * y @ alpha + chol.diagonal().log().sum() + 10 * math.log(2 * math.pi)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        figures.append(loss.item())
    return [*figures, log.detach(), log.grad]


@program
def attention_model(torch: Any) -> list[Any]:
    """A small causal transformer with rotary positions, root-mean-square norm and gated units, a few steps."""
    nn, f = torch.nn, torch.nn.functional
    torch.manual_seed(13)

    class Block(nn.Module):
        def __init__(self, d: int, heads: int) -> None:
            super().__init__()
            self.heads = heads
            self.norm1, self.norm2 = nn.RMSNorm(d), nn.RMSNorm(d)
            self.qkv, self.out = nn.Linear(d, 3 * d, bias=False), nn.Linear(d, d, bias=False)
            self.gate, self.up, self.down = nn.Linear(d, 2 * d), nn.Linear(d, 2 * d), nn.Linear(2 * d, d)

        def forward(self, x: Any) -> Any:
            b, t, d = x.shape
            q, k, v = self.qkv(self.norm1(x)).view(b, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4).unbind(0)
            angle = torch.outer(
                torch.arange(t).to(torch.get_default_dtype()), 1e4 ** -torch.linspace(0, 1, q.shape[-1] // 2)
            )
            turn = torch.polar(torch.ones_like(angle), angle)

            def rotate(h: Any) -> Any:
                c = torch.view_as_complex(h.contiguous().unflatten(-1, (-1, 2)))
                return torch.view_as_real(c * turn).flatten(-2)

            a = f.scaled_dot_product_attention(rotate(q), rotate(k), v, is_causal=True)
            x = x + self.out(a.transpose(1, 2).reshape(b, t, d))
            h = self.norm2(x)
            return x + self.down(f.silu(self.gate(h)) * self.up(h))

    embed, head = nn.Embedding(11, 16), nn.Linear(16, 11)
    net = nn.ModuleList([Block(16, 2) for _ in range(2)])
    params = [*embed.parameters(), *net.parameters(), *head.parameters()]
    optimizer = torch.optim.AdamW(params, lr=3e-3, weight_decay=0.1)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1e-2, total_steps=6)
    figures = []
    for _ in range(6):
        tokens = torch.randint(0, 11, (4, 9))
        h = embed(tokens[:, :-1])
        for block in net:
            h = block(h)
        loss = f.cross_entropy(head(h).flatten(0, 1), tokens[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        figures += [loss.item(), nn.utils.clip_grad_norm_(params, 1.0).item(), schedule.get_last_lr()[0]]
        optimizer.step()
        schedule.step()
    return figures


@program
def sharpness_aware(torch: Any) -> list[Any]:
    """Sharpness-aware minimisation (Foret et al., 2021) with batch norm, and stochastic weight averaging."""
    torch.manual_seed(14)
    net = torch.nn.Sequential(
        torch.nn.Linear(6, 16), torch.nn.BatchNorm1d(16), torch.nn.ReLU(), torch.nn.Dropout(0.2), torch.nn.Linear(16, 1)
    )
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, nesterov=True)
    averaged = torch.optim.swa_utils.AveragedModel(net)
    x = torch.randn(32, 6)
    y = (x[:, :1] * x[:, 1:2] > 0).to(torch.get_default_dtype())
    figures = []
    for _ in range(6):
        loss = torch.nn.functional.binary_cross_entropy_with_logits(net(x), y)
        loss.backward()
        with torch.no_grad():
            size = torch.stack([p.grad.norm() for p in net.parameters()]).norm()
            moves = [p.grad * (0.05 / (size + 1e-12)) for p in net.parameters()]
            for p, e in zip(net.parameters(), moves, strict=True):
                p.add_(e)
        optimizer.zero_grad()
        torch.nn.functional.binary_cross_entropy_with_logits(net(x), y).backward()
        with torch.no_grad():
            for p, e in zip(net.parameters(), moves, strict=True):
                p.sub_(e)
        optimizer.step()
        optimizer.zero_grad()
        averaged.update_parameters(net)
        figures += [loss.item(), size.item()]
    torch.optim.swa_utils.update_bn([x], averaged)
    averaged.eval()
    return [*figures, averaged(x).detach()]


@program
def variational_autoencoder(torch: Any) -> list[Any]:
    """A convolutional variational autoencoder (Kingma & Welling, 2014), reparameterised."""
    nn, f = torch.nn, torch.nn.functional
    torch.manual_seed(15)
    encoder = nn.Sequential(nn.Conv2d(1, 4, 3, 2, 1), nn.ELU(), nn.Conv2d(4, 8, 3, 2, 1), nn.ELU(), nn.Flatten())
    heads = nn.Linear(32, 6)
    decoder = nn.Sequential(
        nn.Linear(3, 32), nn.Unflatten(1, (8, 2, 2)), nn.ConvTranspose2d(8, 4, 4, 2, 1), nn.ELU(),
        nn.Upsample(scale_factor=2, mode="bilinear"), nn.Conv2d(4, 1, 3, padding="same", padding_mode="reflect"),
    )  # fmt: skip
    params = [*encoder.parameters(), *heads.parameters(), *decoder.parameters()]
    optimizer = torch.optim.Adamax(params)
    images = (torch.rand(6, 1, 8, 8) > 0.5).to(torch.get_default_dtype())
    figures = []
    for _ in range(4):
        mean, log_var = heads(encoder(images)).chunk(2, 1)
        z = mean + torch.randn_like(mean) * (0.5 * log_var).exp()
        fit = f.binary_cross_entropy_with_logits(decoder(z), images, reduction="sum")
        kl = -0.5 * torch.sum(1 + log_var - mean.pow(2) - log_var.exp())
        loss = (fit + kl) / 6
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        figures += [loss.item(), kl.item()]
    return figures


@program
def contrastive(torch: Any) -> list[Any]:
    """SimCLR's loss (Chen et al., 2020) and a momentum encoder with a queue (He et al., 2020)."""
    f = torch.nn.functional
    torch.manual_seed(16)
    query, key = mlp(torch, 8, 16, 4, act="ReLU"), mlp(torch, 8, 16, 4, act="ReLU")
    key.load_state_dict(query.state_dict())
    for p in key.parameters():
        p.requires_grad_(False)
    queue = f.normalize(torch.randn(4, 12), dim=0)
    optimizer = torch.optim.SGD(query.parameters(), lr=0.1, weight_decay=1e-4)
    figures = []
    for _ in range(4):
        x = torch.randn(6, 8)
        q = f.normalize(query(x + 0.1 * torch.randn_like(x)), dim=1)
        with torch.no_grad():
            for a, b in zip(key.parameters(), query.parameters(), strict=True):
                a.lerp_(b, 0.1)
            k = f.normalize(key(x[torch.randperm(6)]), dim=1)
        logits = torch.cat([torch.einsum("nc,nc->n", q, k)[:, None], torch.einsum("nc,ck->nk", q, queue)], 1) / 0.07
        both = torch.cat([q, k])
        similar = (both @ both.T).masked_fill(torch.eye(12, dtype=torch.bool), float("-inf")) / 0.5
        loss = f.cross_entropy(logits, torch.zeros(6, dtype=torch.long))
        loss = loss + f.cross_entropy(similar, torch.arange(12).roll(6))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        queue = torch.cat([queue[:, 6:], k.T], 1)
        figures.append(loss.item())
    return figures


@program
def sequence_model(torch: Any) -> list[Any]:
    """A bidirectional LSTM over packed sequences with CTC (Graves et al., 2006)."""
    nn = torch.nn
    torch.manual_seed(17)
    net, head = nn.LSTM(5, 8, num_layers=2, bidirectional=True), nn.Linear(16, 4)
    optimizer = torch.optim.NAdam([*net.parameters(), *head.parameters()], lr=1e-2)
    lengths = torch.tensor([9, 7, 6])
    x = nn.utils.rnn.pad_sequence([torch.randn(int(n), 5) for n in lengths])
    targets, sizes = torch.tensor([1, 2, 3, 1, 1, 3]), torch.tensor([2, 3, 1])
    figures = []
    for _ in range(4):
        packed = nn.utils.rnn.pack_padded_sequence(x, lengths)
        out, _ = nn.utils.rnn.pad_packed_sequence(net(packed)[0])
        loss = nn.functional.ctc_loss(head(out).log_softmax(2), targets, lengths, sizes)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        figures.append(loss.item())
    return figures


@program
def normalizing_flow(torch: Any) -> list[Any]:
    """Real NVP's likelihood (Dinh et al., 2017), its Jacobian's determinant checked with jacrev and slogdet."""
    func = torch.func
    torch.manual_seed(18)
    nets = torch.nn.ModuleList([mlp(torch, 2, 8, 4) for _ in range(3)]).double()

    def flow(x: Any) -> Any:
        total = torch.zeros((), dtype=torch.float64)
        for net in nets:
            a, b = x.split(2, -1)
            shift, scale = net(a).tensor_split(2, -1)
            x = torch.cat([b * torch.exp(torch.tanh(scale)) + shift, a], -1)
            total = total + torch.tanh(scale).sum(-1)
        return x, total

    x = torch.randn(5, 4).double()
    z, total = flow(x)
    jacobian = func.vmap(func.jacrev(lambda v: flow(v)[0]))(x)
    loss = (0.5 * z.square().sum(-1) - total).mean()
    loss.backward()
    return [loss, torch.linalg.slogdet(jacobian).logabsdet - total, *(p.grad for p in nets.parameters())]


@program
def ensemble(torch: Any) -> list[Any]:
    """An ensemble trained at once by vmap over stacked modules, each with its own dropout."""
    func = torch.func
    torch.manual_seed(19)
    models = [mlp(torch, 3, 8, 2) for _ in range(4)]
    params, buffers = func.stack_module_state(models)
    x, y = torch.randn(10, 3), torch.randint(0, 2, (10,))

    def loss(p: Any, b: Any) -> Any:
        return torch.nn.functional.cross_entropy(func.functional_call(models[0], (p, b), (x,)), y)

    figures = []
    for _ in range(3):
        grads, values = func.vmap(func.grad_and_value(loss))(params, buffers)
        params = {k: p - 0.1 * grads[k] for k, p in params.items()}
        figures.append(values.detach())
    variance = func.vmap(lambda p, b: func.functional_call(models[0], (p, b), (x,)).softmax(-1))(params, buffers).var(0)
    return [*figures, variance.detach()]


@program
def molecular_forces(torch: Any) -> list[Any]:
    """Forces and a Hessian of a Lennard-Jones cluster, its frequencies and a step of velocity Verlet."""
    torch.manual_seed(20)
    axes = torch.arange(2, dtype=torch.float64)
    r = torch.cartesian_prod(axes, axes, axes) * 1.1 + 0.05 * torch.randn(8, 3).double()

    def energy(r: Any) -> Any:
        i, j = torch.triu_indices(8, 8, 1)
        d = (r[i] - r[j]).norm(dim=-1)
        return 4 * (d.pow(-12) - d.pow(-6)).sum()

    force = -torch.func.grad(energy)(r)
    hess = torch.func.hessian(energy)(r).reshape(24, 24)
    v = torch.zeros_like(r)
    for _ in range(5):
        v = v + 0.005 * force
        r = r + 0.01 * v
        force = -torch.func.grad(energy)(r)
        v = v + 0.005 * force
    return [energy(r), force, hess, torch.linalg.eigvalsh(hess), 0.5 * v.square().sum()]


@program
def spectral_loss(torch: Any) -> list[Any]:
    """A signal fitted through stft magnitudes, a filter by rfft, and a mel-like product, with gradients."""
    torch.manual_seed(21)
    time = torch.arange(256) / 64
    target = torch.sin(2 * math.pi * 5 * time) + 0.5 * torch.sin(2 * math.pi * 11 * time)
    signal = torch.nn.Parameter(torch.randn(256) * 0.1)
    window = torch.hann_window(32)
    optimizer = torch.optim.Rprop([signal], lr=1e-2)

    def magnitude(s: Any) -> Any:
        return torch.stft(s, 32, 8, window=window, return_complex=True).abs().clamp_min(1e-5).log()

    figures = []
    for _ in range(5):
        smooth = torch.fft.irfft(torch.fft.rfft(signal) * torch.exp(-torch.linspace(0, 2, 129)), n=256)
        loss = (magnitude(smooth) - magnitude(target)).abs().mean() + torch.nn.functional.huber_loss(smooth, target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        figures.append(loss.item())
    return [*figures, signal.grad]


@program
def graph_network(torch: Any) -> list[Any]:
    """Graph convolutions and attention with index_add, scatter_reduce and scatter softmax over edges."""
    torch.manual_seed(22)
    n, edges = 9, torch.randint(0, 9, (2, 30))
    x = torch.randn(n, 4)
    w, a = torch.randn(4, 6, requires_grad=True), torch.randn(12, requires_grad=True)
    h = x @ w
    source, sink = edges
    score = torch.nn.functional.leaky_relu(torch.cat([h[source], h[sink]], 1) @ a, 0.2)
    top = torch.full((n,), -torch.inf).scatter_reduce(0, sink, score, "amax")
    weight = (score - top[sink]).exp()
    total = torch.zeros(n).index_add(0, sink, weight)
    out = torch.zeros(n, 6).index_add_(0, sink, h[source] * (weight / total[sink]).unsqueeze(1))
    degree = torch.bincount(sink, minlength=n).clamp(min=1).to(torch.get_default_dtype())
    mean = torch.zeros(n, 6).scatter_reduce_(0, sink[:, None].expand(-1, 6), h[source], "mean", include_self=False)
    loss = (out / degree[:, None].sqrt() + mean).square().mean()
    loss.backward()
    return [loss, w.grad, a.grad]


@program
def differentiable_rendering(torch: Any) -> list[Any]:
    """Soft discs on a grid composed in depth order, sampled by grid_sample, and fitted by their parameters."""
    torch.manual_seed(23)
    centres = torch.rand(5, 2, requires_grad=True)
    colours = torch.rand(5, 3, requires_grad=True)
    depth = torch.rand(5)
    ys, xs = torch.meshgrid(torch.linspace(0, 1, 12), torch.linspace(0, 1, 12), indexing="ij")
    pixels = torch.stack([xs, ys], -1)
    order = depth.argsort(stable=True)
    alpha = torch.sigmoid(20 * (0.2 - torch.linalg.vector_norm(pixels[..., None, :] - centres, dim=-1)))[..., order]
    through = torch.cumprod(torch.cat([torch.ones(12, 12, 1), 1 - alpha], -1), -1)[..., :-1]
    image = torch.einsum("hwk,kc->hwc", alpha * through, colours[order])
    theta = torch.tensor([[[0.9, -0.1, 0.1], [0.1, 0.9, 0.0]]])
    grid = torch.nn.functional.affine_grid(theta, [1, 3, 12, 12], align_corners=False)
    turned = torch.nn.functional.grid_sample(image.permute(2, 0, 1)[None], grid, align_corners=False)
    small = torch.nn.functional.interpolate(turned, size=(6, 6), mode="bilinear", antialias=True)
    loss = (small - 0.5).square().mean() + torch.trapezoid(image.mean(-1), dx=0.1).sum() * 1e-2
    loss.backward()
    return [loss, image.detach(), centres.grad, colours.grad]


@program
def tensor_pruning(torch: Any) -> list[Any]:
    """Pruning, spectral norm and orthogonal parametrization around a training step, and quantiles of the weights."""
    nn = torch.nn
    torch.manual_seed(24)
    net = nn.Sequential(nn.Linear(6, 10), nn.ReLU(), nn.Linear(10, 6), nn.ReLU(), nn.Linear(6, 2))
    prune = importlib.import_module(f"{torch.__name__}.nn.utils.prune")
    prune.l1_unstructured(net[0], "weight", amount=0.4)
    nn.utils.parametrizations.weight_norm(net[2])
    nn.utils.parametrizations.spectral_norm(net[4])
    optimizer = torch.optim.Adagrad(net.parameters(), lr=0.05)
    x, y = torch.randn(16, 6), torch.randn(16, 2)
    figures = []
    for _ in range(4):
        loss = nn.functional.smooth_l1_loss(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        figures.append(loss.item())
    prune.remove(net[0], "weight")
    weights = nn.utils.parameters_to_vector([net[0].weight])
    return [*figures, (weights == 0).sum(), weights.abs().quantile(torch.tensor([0.5, 0.9])), net[4].weight.detach()]


@program
def kalman_filter(torch: Any) -> list[Any]:
    """A linear Gaussian filter's likelihood and its gradient in the noise, batched, with matrix functions."""
    torch.manual_seed(25)
    a = torch.linalg.matrix_exp(0.1 * torch.tensor([[0.0, 1.0], [-1.0, -0.1]], dtype=torch.float64))
    c = torch.tensor([[1.0, 0.0]], dtype=torch.float64)
    log_q = torch.tensor([-3.0, -4.0], dtype=torch.float64, requires_grad=True)
    y = torch.randn(12, 3, 1, 1, dtype=torch.float64)
    mean, cov = torch.zeros(3, 2, 1).double(), torch.eye(2).double().expand(3, 2, 2)
    total = torch.zeros((), dtype=torch.float64)
    for observed in y:
        mean, cov = a @ mean, a @ cov @ a.mT + torch.diag_embed(log_q.exp())
        s = c @ cov @ c.mT + 0.1
        gain = torch.linalg.solve(s, cov @ c.mT, left=False)
        innovation = observed - c @ mean
        total = total - 0.5 * (innovation**2 / s + torch.logdet(s)[:, None, None]).sum()
        mean, cov = mean + gain @ innovation, (torch.eye(2).double() - gain @ c) @ cov
    total.backward()
    return [total, mean.detach(), cov.detach(), log_q.grad]


@program
def straight_through(torch: Any) -> list[Any]:
    """Vector quantization (van den Oord et al., 2017) with a straight-through estimator and a gumbel softmax."""
    f = torch.nn.functional
    torch.manual_seed(26)

    class Round(torch.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(x: Any) -> Any:
            return torch.round(x)

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            pass

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad

        @staticmethod
        def jvp(ctx: Any, tangent: Any) -> Any:
            return tangent.clone()

    book = torch.randn(8, 4, requires_grad=True)
    x = torch.randn(6, 4, requires_grad=True)
    nearest = torch.cdist(x, book).argmin(-1)
    quantized = f.embedding(nearest, book)
    loss = f.mse_loss(quantized, x.detach()) + 0.25 * f.mse_loss(x, quantized.detach())
    passed = x + (quantized - x).detach()
    loss = loss + f.gumbel_softmax(passed, hard=True, dim=-1).mul(torch.arange(4.0)).sum()
    loss = loss + Round.apply(2 * x).square().sum()
    loss.backward()
    rows = torch.func.vmap(torch.func.grad(lambda v: Round.apply(v * 3).sum()))(x.detach())
    return [loss, nearest, x.grad, book.grad, rows]


@program
def checkpointed_recurrence(torch: Any) -> list[Any]:
    """A long recurrence in checkpoints with gradient accumulation, hooks that clip, and truncated backward passes."""
    torch.manual_seed(27)
    cell = torch.nn.GRUCell(4, 6)
    clipped: list[float] = []
    for p in cell.parameters():
        p.register_hook(lambda g: g.clamp(-0.05, 0.05))
        p.register_post_accumulate_grad_hook(lambda p: clipped.append(p.grad.abs().max().item()))
    h = torch.zeros(2, 6)
    x = torch.randn(12, 2, 4)

    def segment(h: Any, xs: Any) -> Any:
        for x in xs:
            h = torch.nn.functional.dropout(cell(x, h), 0.1)
        return h

    for part in x.split(4):
        h = torch.utils.checkpoint.checkpoint(segment, h.detach(), part, use_reentrant=False)
        (h.square().sum() / 3).backward()
    return [h.detach(), sorted(clipped), *(p.grad for p in cell.parameters())]


@program
def notebook(torch: Any) -> list[Any]:
    """The uses of NumPy in a notebook: windows, masks, statistics, sets, dates in bins, and printing."""
    torch.manual_seed(28)
    table = torch.randn(40, 3).cumsum(0)
    windows = table.unfold(0, 5, 2)
    z = (windows - windows.mean(-1, keepdim=True)) / windows.std(-1, keepdim=True)
    labels = torch.bucketize(table[:, 0].contiguous(), torch.tensor([-1.0, 0.0, 1.0]))
    found, inverse, counts = labels.unique(return_inverse=True, return_counts=True)
    means = torch.zeros(len(found)).scatter_add(0, inverse, table[:, 1]) / counts
    best = table.topk(3, 0)
    table[table.isclose(table.median(0).values)] = torch.nan
    return [
        z, found, counts, means, best.values, best.indices, table.nanmean(0), torch.nan_to_num(table).cov(),
        torch.histc(z, 10), torch.corrcoef(torch.randn(3, 9)), table.diff(dim=0).nansum(), z.flatten()[::7].tolist(),
    ]  # fmt: skip
