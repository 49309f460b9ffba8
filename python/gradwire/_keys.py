"""The keys of experiments, for editors and type checkers. tools/python_keys.py writes this file."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypedDict, Union

import numpy as np

Integer = Union[int, "np.integer[Any]"]
Number = Union[float, "np.floating[Any]", Integer]
_Problem = TypedDict("_Problem", {
    "lambda": Number,
}, total=False)


class Problem(_Problem, total=False):
    """The section [problem] of an experiment."""

    kind: Literal["quadratic", "least_squares", "logistic", "mlp", "char_mlp", "gpt", "cnn", "custom"]
    """the family of objectives ["quadratic", "least_squares", "logistic", "mlp", "char_mlp", "gpt", "cnn" or "custom"; required]"""
    dim: Integer
    """quadratic, custom: d, the length of x; least_squares, logistic, mlp, cnn: number of features [an integer, 0 to 4294967294;
    default: quadratic, custom: required; least_squares, logistic, mlp, cnn: the largest feature index (0)]"""
    heterogeneity: Number
    """quadratic: s, how much the clients differ; 0: not at all [a number, 0 or more; default: 0.0]"""
    noise: Number
    """quadratic: standard deviation of each entry of the gradient of one sample (`batch`); full gradients have 0; least_squares,
    logistic, mlp, cnn: for `synthetic`: standard deviation of the noise in real labels, or the chance that a class is wrong [a
    number, 0 or more; default: quadratic: 0.0; least_squares, logistic, mlp, cnn: 0.1]"""
    data: str
    """least_squares, logistic, mlp, cnn: `digits`, `libsvm:PATH`, `csv:PATH`, `npy:X.npy,y.npy`, `npz:PATH`, `idx:DIR`,
    `synthetic`, or a public data set such as `mnist` or `a9a`; a path that ends in .csv, .tsv, .svm, .libsvm, .npy or .npz needs no
    kind; may be compressed with gzip, bzip2 or xz; char_mlp, gpt: `text:PATH` or `shakespeare` (text:tinyshakespeare.txt); may be
    compressed with gzip, bzip2 or xz [a string; required]"""
    test: str
    """least_squares, logistic, mlp, cnn: data on which accuracy is measured, spelled like data; char_mlp, gpt: text on which
    accuracy is measured, spelled like data [a string; default: none]"""
    test_share: Number
    """least_squares, logistic, mlp, cnn: share of the samples held out for accuracy before the rest is split; they are drawn;
    char_mlp, gpt: share of the text held out for accuracy before the rest is split; gpt: its end; char_mlp: drawn samples [a number
    in [0, 1); default: 0.0]"""
    label: Union[str, Number]
    """least_squares, logistic, mlp, cnn: for `csv`: the column of the label, by its name or its number from 1 [a name or a number;
    default: label, class, target or y, else the last]"""
    labels: str
    """least_squares, logistic, mlp, cnn: for `csv`: the texts of the label in the order of their numbers, as in "no, yes": two are
    -1 and +1, more count from 0 [a string of two or more different texts with commas between them, as in "no, yes"; default: those
    of the data, in ascending order]"""
    columns: str
    """least_squares, logistic, mlp, cnn: for `csv`: the columns of the features, as in "age, 3-7, color"; the order is that of the
    file [a string; default: all others]"""
    categories: str
    """least_squares, logistic, mlp, cnn: for `csv`: the texts of columns, as in "color: red|green; size: S|M|L"; each text is a
    feature, in this order [a string of columns with their different texts, as in "color: red|green; size: S|M|L"; default: those of
    the data, in ascending order]"""
    missing: Literal["refuse", "drop", "mean"]
    """least_squares, logistic, mlp, cnn: for `csv`: a missing value is an error (`refuse`), leaves out its line (`drop`), or is the
    mean of its column (`mean`) ["refuse", "drop" or "mean"; default: "refuse"]"""
    normalize: Literal["none", "standard", "minmax", "unit_rows"]
    """least_squares, logistic, mlp, cnn: features of mean 0 and standard deviation 1 (`standard`), features from 0 to 1 (`minmax`),
    or samples of Euclidean norm 1 (`unit_rows`); over a network, clients send sums of their features for the first two ["none",
    "standard", "minmax" or "unit_rows"; default: "none"]"""
    samples: Integer
    """least_squares, logistic, mlp, cnn: number of samples of `synthetic` [an integer, 1 to 4294967295; default: 1000]"""
    classes: Integer
    """least_squares, logistic, mlp, cnn: number of labels of `synthetic`; 0: labels are real numbers [an integer, 0 to 65536;
    default: 2]"""
    regularizer: Literal["none", "l2", "nonconvex"]
    """least_squares, logistic: `l2` is lambda/2 sum_j x_j^2, `nonconvex` is lambda sum_j x_j^2 / (1 + x_j^2) ["none", "l2" or
    "nonconvex"; default: "none"]"""
    bias: bool
    """least_squares, logistic: append a constant feature 1, so d is one more [true or false; default: false]"""
    loss: Literal["logistic", "sigmoid_squared"]
    """logistic: loss of a margin z: `logistic` is log(1 + e^-z), `sigmoid_squared` is (1 - sigma(z))^2, which is not convex
    ["logistic" or "sigmoid_squared"; default: "logistic"]"""
    hidden: Sequence[Integer]
    """mlp: widths of the hidden layers; [] is softmax regression; char_mlp: widths of the hidden layers; cnn: widths of the fully
    connected layers [a list of at most 64 integers, 1 to 1000000; default: mlp: []; char_mlp: [128]; cnn: [120, 84]]"""
    activation: Literal["tanh", "relu", "sigmoid", "gelu"]
    """mlp, char_mlp, cnn: activation function between layers; gpt: activation function in the feed-forward layers ["tanh", "relu",
    "sigmoid" or "gelu"; default: mlp, char_mlp: "tanh"; gpt, cnn: "relu"]"""
    activation_dtype: Literal["exact", "bfloat16"]
    """mlp, char_mlp, gpt, cnn: type of the activations kept for the backward pass; bfloat16: rounded gradients, about two thirds of
    the memory in deep transformers, and no saving in small networks ["exact" or "bfloat16"; default: "exact"]"""
    activation_budget: str
    """mlp, char_mlp, gpt, cnn: memory of a client for the gradient of a microbatch: activations that do not fit are computed again,
    with the same bits; `sqrt`: keeps about sqrt(n) of n places with few live numbers ["none", "sqrt" or a size such as "4MB" (or
    KB, GB); default: "none"]"""
    context: Integer
    """char_mlp, gpt: number of letters before the predicted one [an integer, 1 to 4096; default: char_mlp: 16; gpt: 8]"""
    width: Integer
    """char_mlp: length of the vector for a letter; gpt: length of the vector at each position; 4 times as many inside the feed-
    forward layers [an integer, 1 to 1000000; default: char_mlp: 64; gpt: 24]"""
    tanh_logits: bool
    """char_mlp, gpt: tanh on the outputs, which keeps the loss away from 0; false trains further [true or false; default: true]"""
    layers: Integer
    """gpt: number of blocks of attention and feed-forward [an integer, 1 to 1000; default: 6]"""
    heads: Integer
    """gpt: heads of the attention; divides width [an integer, 1 to 1000000; default: 6]"""
    epsilon: Number
    """gpt: added to the variance in layer norms [a number, 0 or more; default: 1e-05]"""
    filters: Sequence[Integer]
    """cnn: channels after each 5 x 5 convolution; max pooling 2 x 2 follows each [a list of at most 64 integers, 1 to 1000000;
    default: [6, 16]]"""
    channels: Integer
    """cnn: numbers per pixel; the features are the image channel by channel, row by row [an integer, 1 to 1024; default: 1]"""
    image_height: Integer
    """cnn: rows of pixels; 0: from image_width, or a square [an integer, 0 to 4096; default: 0]"""
    image_width: Integer
    """cnn: pixels of a row; 0: from image_height, or a square [an integer, 0 to 4096; default: 0]"""


class Clients(TypedDict, total=False):
    """The section [clients] of an experiment."""

    count: Integer
    """n, the number of clients [an integer, 1 to 1000000; default: 10]"""
    partition: Literal["contiguous", "iid", "by_label", "dirichlet", "by_role"]
    """how clients divide the samples: in their order, shuffled (`iid`), sorted by label, with shares of each label drawn from a
    Dirichlet distribution, or each role of a play with what it says (`by_role`) ["contiguous", "iid", "by_label", "dirichlet" or
    "by_role"; default: "contiguous"]"""
    dirichlet_alpha: Number
    """`dirichlet`: the concentration; smaller values make clients differ more [a number above 0; default: 0.3]"""
    samples_per_client: Integer
    """number of samples of each client, drawn from all that are not held out; two clients may hold the same sample, and there may
    be more clients than samples [an integer, 0 to 4294967295; default: none (0): `partition` divides the samples]"""
    replication: Integer
    """number of clients that hold each part of the data (r + 1 for `coded_gd`) [an integer, 1 to 1000; default: 1]"""
    placement: Literal["ring", "groups"]
    """the parts of a client if `replication` is above 1: its own part and those of the next clients (`ring`), or all parts of its
    group of `replication` clients (`groups`) ["ring" or "groups"; default: "ring"]"""
    participation: Number
    """share of the clients that a round asks: a uniform sample of round(share n), at least 1 [a number in (0, 1]; default: 1.0]"""
    weights: Literal["equal", "samples"]
    """weights of the clients in f and in the algorithm's means: 1/n each, or in proportion to their numbers of samples ["equal" or
    "samples"; default: "equal"]"""
    latency: Union[str, Number]
    """simulations: the time of a request to client i = 0, 1, ... on a virtual clock: a number, `sqrt` (the root of i + 1), `linear`
    (i + 1), `lognormal:SIGMA` or `pareto:ALPHA` (drawn for each request, mean 1), a product such as `0.1*sqrt*pareto:1.5`, or
    `file:PATH` with one line for each client: the times of its requests in order, which then repeat; with `+fail:P` at the end, a
    request never returns with probability P; metrics.csv then has virtual seconds [a number or a string; default: none;
    asynchronous algorithms: 1]"""


_Algorithm = TypedDict("_Algorithm", {
    "lambda": Union[str, Number],
}, total=False)


class Algorithm(_Algorithm, total=False):
    """The section [algorithm] of an experiment."""

    name: str
    """an algorithm; `gradwire list algorithms` names them [a string; required]"""
    compressor: str
    """`NAME` or `NAME:KEY=VALUE,...`; `gradwire list compressors` names them; a count may be a share of d, as in `1%` [a string;
    default: "identity"]"""
    step_size: Union[str, Number]
    """`theory`, `theory*8` or a number above 0 [a number or a string; default: the algorithm's]"""
    batch: Union[Literal["full"], Integer]
    """samples per stochastic gradient; `full`: all samples of the client ["full" or an integer, 1 to 4294967295; default:
    "full"]"""
    schedule: Union[str, Number]
    """gd, dcgd, sgd_nice, fedavg, fedprox, scaffold, fedadagrad, fedyogi, fedadam, ef21, ef21_w, ef21_sgd, ef21_sgdm, ef21_pp,
    ef21_bc, ef21_hb, ef21_plus, fedbuff: decay of the step size: constant | inverse_sqrt (1/sqrt(t+1)) | inverse (1/(t+1)) |
    cosine."""
    horizon: Union[str, Number]
    """gd, dcgd, sgd_nice, fedavg, fedprox, scaffold, fedadagrad, fedyogi, fedadam, ef21, ef21_w, ef21_sgd, ef21_sgdm, ef21_pp,
    ef21_bc, ef21_hb, ef21_plus, fedbuff: T: rounds until the cosine schedule reaches 0; 0 means run.rounds."""
    partial_gradient: Union[str, Number]
    """gd, dcgd, diana, ef21_p, asgd, delay_adaptive_asgd, rennala, ringmaster, ringleader, mindflayer: true: compute only the
    coordinates that randk or randseqk send; same bits, less work, but a coordinate that is not finite is only detected when it is
    drawn."""
    backprop_fraction: Union[str, Number]
    """gd, dcgd, diana, ef21_p, asgd, delay_adaptive_asgd, rennala, ringmaster, ringleader, mindflayer: share of the paths through a
    network that each backward pass follows, drawn at random, unbiased (arXiv:2007.10412); 1 follows all."""
    recovery: Union[str, Number]
    """coded_gd: exact: the gradient of f, from any n - r replies (r + 1 = clients.replication); approximate: the closest to it from
    any number of replies."""
    mu: Union[str, Number]
    """nesterov: strong convexity; theory: the problem's (lambda of l2); fedprox: weight of the proximal term (mu/2) ||y - x||^2; 0
    is fedavg; adiana: strong convexity; theory: the problem's; marina, vr_marina, pp_marina, page, ef21, ef21_w, ef21_plus:
    constant of the PL condition, for its theorem's step and linear rate: none | theory (the problem's) | a number; fednl: least
    eigenvalue of option 1; theory: the strong convexity of the problem."""
    l1: Union[str, Number]
    """sgd_nice: weight of the l1 norm, whose prox follows each step; 0 means no prox."""
    directions: Union[str, Number]
    """fwd_grad: K, derivatives that a client computes and sends in a round; 0 means min(10, d)."""
    distribution: Union[str, Number]
    """fwd_grad: entries of the directions: rademacher (-1 and 1) | gaussian (normal)."""
    local_steps: Union[str, Number]
    """fedavg, fedprox, scaffold, fedadagrad, fedyogi, fedadam, fedbuff: K: gradient steps of a client in one round."""
    local_epochs: Union[str, Number]
    """fedavg, fedprox, scaffold, fedadagrad, fedyogi, fedadam, fedbuff: passes of a client over its samples in one round, in
    shuffled batches; 0 uses local_steps."""
    local_step_size: Union[str, Number]
    """fedavg, fedprox, scaffold, fedadagrad, fedyogi, fedadam, fedbuff: gamma_l of the client's steps; theory: 1/(K L_max)."""
    local_optimizer: Union[str, Number]
    """fedavg, fedprox, scaffold, fedadagrad, fedyogi, fedadam, fedbuff: optimizer of the client's steps: sgd | sgd:momentum=0.9 |
    adam | microadam, with settings as in microadam:k=1%; its state starts at zero in each round."""
    local_weight_decay: Union[str, Number]
    """fedavg, fedprox, scaffold, fedadagrad, fedyogi, fedadam, fedbuff: lambda: each local step first shrinks y by the factor 1 -
    gamma_l lambda."""
    local_clip_norm: Union[str, Number]
    """fedavg, fedprox, scaffold, fedadagrad, fedyogi, fedadam, fedbuff: largest norm of a local step's direction; longer ones are
    scaled down; 0 means no limit."""
    option: Union[str, Number]
    """scaffold: update of c_i: 2 from the local steps | 1 by a gradient at x; fednl: 2: H + l I | 1: eigenvalues of H raised to mu;
    the loss may rise."""
    beta1: Union[str, Number]
    """fedadagrad, fedyogi, fedadam: decay of the momentum m."""
    tau: Union[str, Number]
    """fedadagrad, fedyogi, fedadam: added to the square root of v; smaller values make the step more adaptive."""
    beta2: Union[str, Number]
    """fedyogi, fedadam: decay of the second moments v."""
    p: Union[str, Number]
    """proxskip: probability that a step communicates; theory: sqrt(gamma mu); vr_diana: probability that w becomes x; theory:
    batch/m; adiana: probability that w becomes y; theory: from n and omega; marina, vr_marina: probability of a whole round;
    theory: zeta/d, and batch/(batch+m) with batches; pp_marina: probability of a whole round; theory: zeta r/(d n); page:
    probability of a whole round; theory: b/(b+N); dasha_page: probability of full gradients; theory: batch/(m+batch); ef21_pp:
    probability that a client takes part: one for all, or n in one string, "0.2 1 0.5"; theory: clients.participation; mindflayer:
    p_i: probability that a computation is in time; one number for all, or n."""
    alpha: Union[str, Number]
    """diana, vr_diana, adiana, cofig, frecon: learning rate of the shifts; theory: 1/(1+omega); fednl: learning rate of the H_i;
    theory: 1/(1+omega), or 1 for contractive compressors."""
    r: Union[str, Number]
    """pp_marina: clients drawn for a compressed round; 0 means round(clients.participation * n)."""
    a: Union[str, Number]
    """dasha, dasha_page, dasha_mvr: momentum of the compressed differences; theory: 1/(2 omega + 1)."""
    b: Union[str, Number]
    """dasha_mvr: momentum of the estimator: 1 forgets, near 0 remembers."""
    init: Union[str, Number]
    """ef21, ef21_w, ef21_sgd, ef21_sgdm, ef21_pp, ef21_bc, ef21_hb, ef21_plus: how g_i starts: gradient | compressed | zero; fednl:
    start of H_i: hessian | zero."""
    w: Union[str, Number]
    """ef21_w: n weights in one string, "0.2 0.5 0.3"; theory: L_i / sum L_j."""
    eta: Union[str, Number]
    """ef21_sgdm: weight of the new gradient in the momentum v_i; ef21_hb: momentum, at least 0 and below 1."""
    compressor_down: Union[str, Number]
    """ef21_bc, ef21_p: contractive compressor of the server's messages."""
    line_search: Union[str, Number]
    """fednl: none | armijo."""
    c: Union[str, Number]
    """fednl: armijo: share of the linear decrease that a step must reach."""
    max_delay: Union[str, Number]
    """asgd: tau: age in steps of the oldest gradient that theory's step allows; 0 means n - 1, the age for n clients of equal
    speed."""
    gradients: Union[str, Number]
    """rennala: S: gradients at one x that make a step; 0 means the number of clients."""
    outdated: Union[str, Number]
    """rennala: stop computations at an older x, or ignore their results: stop | ignore; ringmaster: stop the computation of such a
    gradient, or ignore its result: stop | ignore."""
    delay_threshold: Union[str, Number]
    """ringmaster: R: a gradient at a point R steps old is not used; 0 means the number of clients."""
    trials: Union[str, Number]
    """mindflayer: B_i: computations that a client starts at one x: one number for all, or n in one string, "2 4 1"."""
    allotted_seconds: Union[str, Number]
    """mindflayer: t_i: time after which a computation is cut; 0 means never; one number for all, or n."""
    buffer: Union[str, Number]
    """fedbuff: replies per step of the server."""


class Run(TypedDict, total=False):
    """The section [run] of an experiment."""

    rounds: Integer
    """number of rounds [an integer, 0 to 4294967295; default: 100]"""
    evaluate_every: Integer
    """rounds from one row of metrics.csv to the next; 0 turns evaluation off [an integer, 0 to 4294967295; default: 1]"""
    stop_at_grad_norm_sq: Number
    """the run ends if an evaluation finds a squared gradient norm of at most this; 0 turns this off [a number, 0 or more; default:
    0.0]"""
    stop_at_loss: Union[Literal["none"], Number]
    """the run ends if an evaluation finds a loss of at most this ["none" or a number; default: "none"]"""
    stop_at_accuracy: Number
    """the run ends if an evaluation finds an accuracy of at least this; 0 turns this off [a number in [0, 1]; default: 0.0]"""
    patience: Integer
    """the run ends if this many evaluations in a row find no new minimum of the loss; 0 turns this off [an integer, 0 to
    4294967295; default: 0]"""
    x0: str
    """the start point: `zeros`, `normal`, `model` (the initial parameters of the model) or `file:PATH` (d lines with a number each,
    a model.bin, a .npy or a .gwn) [a string; default: `zeros`; networks: `model`]"""
    monitor: bool
    """simulations: adds the Lyapunov function of the algorithm's theorem and its bound to metrics.csv; the run reports when the
    function exceeds the bound [true or false; default: false]"""
    client_metrics: Literal["auto", "none", "last", "all"]
    """the evaluations whose loss and accuracy of each client go to clients.csv: none, the last, or all; `auto`: the last, or none
    if there are more than 10,000 clients ["auto", "none", "last" or "all"; default: "auto"]"""
    kernels: Literal["best", "portable"]
    """the arithmetic of networks and Hessians: `best` of each processor, or `portable`, which gives the same bits on every
    architecture ["best" or "portable"; default: "best"]"""


class Evaluation(TypedDict, total=False):
    """The section [evaluation] of an experiment."""

    grad_norm: Literal["auto", "every", "first_and_last", "none"]
    """the rows of metrics.csv that have grad_norm_sq, for which every client sends its whole gradient: every row, the first and the
    last (`first_and_last`), or none; `auto`: every row, but `first_and_last` for a gradwire-server that you start yourself, unless
    stop_at_grad_norm_sq is above 0 ["auto", "every", "first_and_last" or "none"; default: "auto"]"""
    accuracy: bool
    """whether clients that have test samples measure accuracy on them [true or false; default: true]"""
    clients: Number
    """share of the clients that evaluations ask: a uniform sample of round(share n), at least 1, the same in all rows; loss,
    gradient norm and accuracy are those of this sample [a number in (0, 1]; default: 1.0]"""


class Server(TypedDict, total=False):
    """The section [server] of an experiment."""

    quorum: Number
    """share of a round's clients whose replies end the round [a number in (0, 1]; default: 1.0]"""
    over_selection: Number
    """share of additional clients that a round asks, so that it does not wait for the slowest; the round still ends after quorum of
    the original number of clients, those that reply first [a number, 0 or more; default: 0.0]"""
    deadline_ms: Integer
    """milliseconds until the server asks a client again that has not replied [an integer, 1 to 4294967295; default: 60000]"""
    zstd: Union[Literal["auto", "off"], Integer]
    """compression of payloads of 1 KB or more: if a trial saves 5 %, never, or at this level ["auto", "off" or an integer, 1 to 19;
    default: "auto"]"""
    overlap: bool
    """over TCP: clients send the final values of a compressed gradient while they compute the rest, if algorithm and compressor
    allow it (docs/reference/wire.md); needs zstd = "off" [true or false; default: false]"""
    client_state_replicas: Union[Literal["auto"], bool]
    """the server keeps a replica of each client's state, to restore clients that lost it; `auto`: over a network, and if
    faults.state_loss or crashes is above 0 or run.monitor is true ["auto", true or false; default: "auto"]"""
    durability: Literal["auto", "process", "power"]
    """what a committed round survives: a crash of the server, or also a power failure (slower: every round waits for the disk);
    `auto`: "power" if the server could not give a client its state back, else "process" ["auto", "process" or "power"; default:
    "auto"]"""
    join_deadline_ms: Integer
    """milliseconds that a server waits for its clients after its start: until all (or start_share of them) have joined, or, in a
    resumed run, until as many are back as its first request needs [an integer, 1 to 4294967295; default: 86400000]"""
    start_share: Number
    """share of the clients whose joins begin the run; the others may join later. It must be above quorum, and the run must need
    nothing of the clients that are missing [a number in (0, 1]; default: 1.0]"""
    tls_min: Literal["TLS1.3", "TLS1.2"]
    """the oldest version of TLS that clients may use, if the server has an --identity ["TLS1.3" or "TLS1.2"; default: "TLS1.3"]"""
    norm_limit: Number
    """the largest Euclidean norm of a reply, over all of its parts; 0 turns this off [a number, 0 or more; default: 0.0]"""
    norm_action: Literal["reject", "halve", "warn"]
    """what happens to a reply beyond norm_limit: the server counts it as missing, halves it until it is within the limit (only for
    algorithms whose clients have no state that follows their replies), or uses it; the log says so ["reject", "halve" or "warn";
    default: "reject"]"""
    quarantine_s: Integer
    """longest ban, in seconds, of a peer that breaks the protocol repeatedly: the third violation bans it for one second, each
    further one for twice as long; 0 turns bans off [an integer, 0 to 4294967295; default: 3600]"""
    connections_per_address: Integer
    """simultaneous connections from one address (IPv6: one /64 network); 0: as many as from all addresses [an integer, 0 to
    4294967295; default: 0]"""
    min_bytes_per_second: Integer
    """the server closes a connection that delivers less of a message than this for half a minute, or accepts less of one for a
    minute; clients allow their server the same time [an integer, 1 to 4294967295; default: 4096]"""
    heartbeat_ms: Integer
    """milliseconds after which server and clients send a sign of life if they sent nothing else; a peer that is silent for three
    times as long is disconnected [an integer, 500 to 600000; default: 15000]"""
    staging_budget: str
    """bytes of replies that may arrive at the same time, from all clients; the server reads further replies only if there is room
    [a size such as "512MB" (or B, KB, GB); default: "512MB"]"""
    zerocopy: bool
    """the kernel sends long requests without copying them (MSG_ZEROCOPY), and one buffer serves all clients; for fast networks,
    without TLS; if the kernel copies anyway, as to clients on this machine, the server continues without it [true or false;
    default: false]"""


class Faults(TypedDict, total=False):
    """The section [faults] of an experiment."""

    lost_replies: Number
    """share of the replies that are lost [a number in [0, 1); default: 0.0]"""
    lost_requests: Number
    """share of the requests that are lost [a number in [0, 1); default: 0.0]"""
    duplicates: Number
    """share of the messages that arrive twice [a number in [0, 1); default: 0.0]"""
    crashes: Number
    """chance that a client crashes and forgets its last proposal [a number in [0, 1); default: 0.0]"""
    state_loss: Number
    """chance that a client loses all of its state [a number in [0, 1); default: 0.0]"""
    shuffle: bool
    """replies arrive in random order [true or false; default: false]"""


class Keys(TypedDict, total=False):
    """An experiment as a dict of sections."""

    name: str
    """the results go to results/NAME [a string; default: the file's name without .toml]"""
    seed: Integer
    """every random number of the run is a function of it [an integer, 0 or more; default: 1]"""
    precision: Literal["fp64", "fp32"]
    """precision of the model and of all vectors that are sent ["fp64" or "fp32"; default: "fp64"]"""
    problem: Problem
    """the section [problem]"""
    clients: Clients
    """the section [clients]"""
    algorithm: Algorithm
    """the section [algorithm]"""
    run: Run
    """the section [run]"""
    evaluation: Evaluation
    """the section [evaluation]"""
    server: Server
    """the section [server]"""
    faults: Faults
    """the section [faults]"""


# Keys with their sections, as in the argument `set`.
DottedKeys = TypedDict("DottedKeys", {
    "name": str,
    "seed": Integer,
    "precision": Literal["fp64", "fp32"],
    "problem.kind": Literal["quadratic", "least_squares", "logistic", "mlp", "char_mlp", "gpt", "cnn", "custom"],
    "problem.lambda": Number,
    "problem.dim": Integer,
    "problem.heterogeneity": Number,
    "problem.noise": Number,
    "problem.data": str,
    "problem.test": str,
    "problem.test_share": Number,
    "problem.label": Union[str, Number],
    "problem.labels": str,
    "problem.columns": str,
    "problem.categories": str,
    "problem.missing": Literal["refuse", "drop", "mean"],
    "problem.normalize": Literal["none", "standard", "minmax", "unit_rows"],
    "problem.samples": Integer,
    "problem.classes": Integer,
    "problem.regularizer": Literal["none", "l2", "nonconvex"],
    "problem.bias": bool,
    "problem.loss": Literal["logistic", "sigmoid_squared"],
    "problem.hidden": Sequence[Integer],
    "problem.activation": Literal["tanh", "relu", "sigmoid", "gelu"],
    "problem.activation_dtype": Literal["exact", "bfloat16"],
    "problem.activation_budget": str,
    "problem.context": Integer,
    "problem.width": Integer,
    "problem.tanh_logits": bool,
    "problem.layers": Integer,
    "problem.heads": Integer,
    "problem.epsilon": Number,
    "problem.filters": Sequence[Integer],
    "problem.channels": Integer,
    "problem.image_height": Integer,
    "problem.image_width": Integer,
    "clients.count": Integer,
    "clients.partition": Literal["contiguous", "iid", "by_label", "dirichlet", "by_role"],
    "clients.dirichlet_alpha": Number,
    "clients.samples_per_client": Integer,
    "clients.replication": Integer,
    "clients.placement": Literal["ring", "groups"],
    "clients.participation": Number,
    "clients.weights": Literal["equal", "samples"],
    "clients.latency": Union[str, Number],
    "algorithm.name": str,
    "algorithm.compressor": str,
    "algorithm.step_size": Union[str, Number],
    "algorithm.batch": Union[Literal["full"], Integer],
    "algorithm.schedule": Union[str, Number],
    "algorithm.horizon": Union[str, Number],
    "algorithm.partial_gradient": Union[str, Number],
    "algorithm.backprop_fraction": Union[str, Number],
    "algorithm.recovery": Union[str, Number],
    "algorithm.mu": Union[str, Number],
    "algorithm.l1": Union[str, Number],
    "algorithm.directions": Union[str, Number],
    "algorithm.distribution": Union[str, Number],
    "algorithm.local_steps": Union[str, Number],
    "algorithm.local_epochs": Union[str, Number],
    "algorithm.local_step_size": Union[str, Number],
    "algorithm.local_optimizer": Union[str, Number],
    "algorithm.local_weight_decay": Union[str, Number],
    "algorithm.local_clip_norm": Union[str, Number],
    "algorithm.option": Union[str, Number],
    "algorithm.beta1": Union[str, Number],
    "algorithm.tau": Union[str, Number],
    "algorithm.beta2": Union[str, Number],
    "algorithm.p": Union[str, Number],
    "algorithm.alpha": Union[str, Number],
    "algorithm.r": Union[str, Number],
    "algorithm.a": Union[str, Number],
    "algorithm.b": Union[str, Number],
    "algorithm.lambda": Union[str, Number],
    "algorithm.init": Union[str, Number],
    "algorithm.w": Union[str, Number],
    "algorithm.eta": Union[str, Number],
    "algorithm.compressor_down": Union[str, Number],
    "algorithm.line_search": Union[str, Number],
    "algorithm.c": Union[str, Number],
    "algorithm.max_delay": Union[str, Number],
    "algorithm.gradients": Union[str, Number],
    "algorithm.outdated": Union[str, Number],
    "algorithm.delay_threshold": Union[str, Number],
    "algorithm.trials": Union[str, Number],
    "algorithm.allotted_seconds": Union[str, Number],
    "algorithm.buffer": Union[str, Number],
    "run.rounds": Integer,
    "run.evaluate_every": Integer,
    "run.stop_at_grad_norm_sq": Number,
    "run.stop_at_loss": Union[Literal["none"], Number],
    "run.stop_at_accuracy": Number,
    "run.patience": Integer,
    "run.x0": str,
    "run.monitor": bool,
    "run.client_metrics": Literal["auto", "none", "last", "all"],
    "run.kernels": Literal["best", "portable"],
    "evaluation.grad_norm": Literal["auto", "every", "first_and_last", "none"],
    "evaluation.accuracy": bool,
    "evaluation.clients": Number,
    "server.quorum": Number,
    "server.over_selection": Number,
    "server.deadline_ms": Integer,
    "server.zstd": Union[Literal["auto", "off"], Integer],
    "server.overlap": bool,
    "server.client_state_replicas": Union[Literal["auto"], bool],
    "server.durability": Literal["auto", "process", "power"],
    "server.join_deadline_ms": Integer,
    "server.start_share": Number,
    "server.tls_min": Literal["TLS1.3", "TLS1.2"],
    "server.norm_limit": Number,
    "server.norm_action": Literal["reject", "halve", "warn"],
    "server.quarantine_s": Integer,
    "server.connections_per_address": Integer,
    "server.min_bytes_per_second": Integer,
    "server.heartbeat_ms": Integer,
    "server.staging_budget": str,
    "server.zerocopy": bool,
    "faults.lost_replies": Number,
    "faults.lost_requests": Number,
    "faults.duplicates": Number,
    "faults.crashes": Number,
    "faults.state_loss": Number,
    "faults.shuffle": bool,
}, total=False)
