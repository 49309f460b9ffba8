/* A client of a federated run, for programs in C and languages that call C. The program brings the function
 * to train, by callbacks that compute gradients or train locally; the server's experiment has problem.kind =
 * "custom". docs/c_api.md explains it with examples.
 *
 * Structures are passed by pointer and begin with struct_size = sizeof of the structure. Set all other
 * members to 0 unless they are needed. Later versions append members, so programs and libraries of different
 * versions work together.
 *
 * The library throws no exception, has no global state, installs no signal handler, never exits and prints
 * nothing. Strings are copied. Functions of one client are called by one thread at a time, except
 * gradwire_cancel(). Several clients may run in several threads. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define GRADWIRE_ABI 1u /* of this header */

#if defined(__GNUC__)
#define GRADWIRE_C_API __attribute__((visibility("default")))
#else
#define GRADWIRE_C_API
#endif

typedef struct gradwire_client gradwire_client;

typedef int32_t gradwire_status;
enum {
  GRADWIRE_OK = 0,
  GRADWIRE_DONE = 1,           /* the run is over */
  GRADWIRE_E_ARGUMENT = -1,    /* an argument, option or structure cannot be used */
  GRADWIRE_E_MEMORY = -2,      /* no memory, or options.memory is too small */
  GRADWIRE_E_REFUSED = -3,     /* the server refuses this client; the same client will be refused again */
  GRADWIRE_E_UNREACHABLE = -4, /* no server for give_up_after_ms, or the server ended the run */
  GRADWIRE_E_CALLBACK = -5,    /* a callback returned something other than 0; the server was told */
  GRADWIRE_E_STATE = -6,       /* called at the wrong time, or state_dir cannot be used */
  GRADWIRE_E_CANCELLED = -7,   /* by gradwire_cancel() */
  GRADWIRE_E_INTERNAL = -8     /* an error in gradwire or the system */
};

/* Flags of gradwire_options. */
enum {
  GRADWIRE_NO_THREADS = 1, /* no thread keeps the connection alive in callbacks; see gradwire_keep_alive() */
  GRADWIRE_INSECURE = 2    /* allow plain text to another machine */
};

enum { GRADWIRE_INFO = 0, GRADWIRE_WARNING = 1, GRADWIRE_ERROR = 2 };

/* The options of the program gradwire-client, which messages name. Only `server` is required. */
typedef struct {
  uint32_t struct_size;
  uint32_t flags;
  const char* server;        /* HOST:PORT of the server or of its relay */
  const char* id;            /* the client keeps its number under the same name; NULL for a new name */
  const char* state_dir;     /* folder that lets a killed client continue; NULL for none */
  const char* identity_dir;  /* folder with the client's key: uses TLS; NULL for none */
  const char* token;         /* creates missing files of identity_dir; or @FILE; NULL for none */
  const char* ca_file;       /* PEM file of certificate authorities: uses TLS; NULL for none */
  uint32_t part;             /* number of this client among `parts`, from 0 */
  uint32_t parts;            /* 0 if the server numbers the clients */
  uint32_t give_up_after_ms; /* time without a server; 0 for one hour */
  /* Gets the lines of the log, without a newline. NULL for none. */
  void (*log)(void* user, int32_t level, const char* line);
  void* log_user;
  /* Returns a socket that is connected or connecting, or -1. The library then owns it. NULL for TCP. */
  int32_t (*connect)(void* user, const char* server);
  void* connect_user;
  /* All memory of the client, for its whole life; TLS and the system have their own. NULL for malloc(). */
  void* memory;
  uint64_t memory_bytes;
} gradwire_options;

/* The run that a client has joined. */
typedef struct {
  uint32_t struct_size;
  uint32_t precision; /* bits of a value: 32 or 64 */
  uint64_t dim;       /* d, the length of x */
  uint32_t client;    /* number of this client, 0 .. clients - 1 */
  uint32_t clients;   /* n */
  uint32_t rounds;
} gradwire_run_info;

/* The local training of one round. */
typedef struct {
  uint32_t struct_size;
  uint32_t round;
  uint32_t steps;   /* K; not used if epochs > 0 */
  uint32_t epochs;  /* passes over the samples, or 0 for K steps */
  uint32_t batch;   /* samples of a step; 0 for all */
  uint64_t seed;    /* for the random choices of this client in this round */
  double step_size; /* gamma_l of this round */
  double proximal;  /* mu of fedprox: each gradient gets mu (y - x), where x is y at the start */
} gradwire_training;

/* The function of this client. Callbacks return 0, or something else to end the client. They run in the
 * thread of gradwire_run() or gradwire_step(). Equal arguments must give equal bits. A loss or gradient that
 * is not finite is an answer: the server decides. A run needs the gradient of its precision. */
typedef struct {
  uint32_t struct_size;
  uint32_t flags;        /* 0 */
  void* user;            /* passed to the callbacks */
  uint64_t sample_count; /* samples for training, at least 1 */
  uint64_t test_count;   /* samples that score() counts; 0 without score() */
  /* Begins a run, before the other callbacks. Optional. */
  int32_t (*begin)(void* user, const gradwire_run_info* run);
  /* Writes the gradient, shape (d), and the mean loss over the samples batch[0 .. n-1] at x, shape (d).
   * n is 0 for all samples. x, batch and gradient live during the call. */
  int32_t (*gradient_f32)(void* user, const float* x, size_t d, const uint32_t* batch, size_t n,
                          float* gradient, double* loss);
  int32_t (*gradient_f64)(void* user, const double* x, size_t d, const uint32_t* batch, size_t n,
                          double* gradient, double* loss);
  /* Trains y, shape (d), in place, and writes the mean loss at the first y: the local steps of fedavg and its
   * kind. Optional; without it, the algorithm takes the steps by gradients. */
  int32_t (*train_f32)(void* user, float* y, size_t d, const gradwire_training* training, double* loss);
  int32_t (*train_f64)(void* user, double* y, size_t d, const gradwire_training* training, double* loss);
  /* Counts the test samples that x classifies correctly. x has the precision of the run. Optional. */
  int32_t (*score)(void* user, const void* x, size_t d, uint64_t* correct);
  uint64_t dim; /* d, if only runs of this length fit; 0 for any */
} gradwire_oracle;

enum { GRADWIRE_READABLE = 1 };

/* What gradwire_step() waits for: the descriptor or the time, whatever comes first. */
typedef struct {
  uint32_t struct_size;
  int32_t fd;         /* the same for the whole life of the client */
  int32_t events;     /* GRADWIRE_READABLE */
  int32_t timeout_ms; /* 0 to call again at once */
} gradwire_wait;

enum { GRADWIRE_CONNECTING = 0, GRADWIRE_JOINING = 1, GRADWIRE_TRAINING = 2, GRADWIRE_OVER = 3 };

typedef struct {
  uint32_t struct_size;
  uint32_t stage;    /* GRADWIRE_CONNECTING .. GRADWIRE_OVER */
  uint32_t round;    /* of the last train callback */
  uint64_t answered; /* answers sent */
  uint64_t late;     /* of them, too late to be used */
  uint64_t bytes_up; /* of the connections so far */
  uint64_t bytes_down;
  uint64_t memory_peak; /* bytes of options.memory up to the highest one used; 0 without it */
  double loss;          /* the last loss of a callback; NaN before the first */
} gradwire_progress;

/* A run to be, for gradwire_memory_needed(). */
typedef struct {
  uint32_t struct_size;
  uint32_t precision; /* 32 or 64 */
  uint32_t clients;   /* n */
  uint32_t batch;     /* algorithm.batch; 0 for all samples */
  uint64_t dim;       /* d */
  uint64_t sample_count;
  const char* algorithm;  /* "ef21" */
  const char* compressor; /* "topk:k=1%"; NULL for that of the algorithm */
} gradwire_plan;

/* Returns the GRADWIRE_ABI of the library. It works with headers of this number and below. */
GRADWIRE_C_API uint32_t gradwire_abi(void);

/* Returns the version of the library, as "0.2.0". */
GRADWIRE_C_API const char* gradwire_version(void);

/* Makes a client, which does not connect yet. On failure writes one line to `why` (cut to why_size bytes),
 * and NULL to `out`. `why` may be NULL. */
GRADWIRE_C_API gradwire_status gradwire_create(const gradwire_options* options, const gradwire_oracle* oracle,
                                               gradwire_client** out, char* why, size_t why_size);

/* Runs the client until the run is over (GRADWIRE_DONE) or an error. It reconnects by itself. */
GRADWIRE_C_API gradwire_status gradwire_run(gradwire_client* client);

/* Does one thing without waiting, and writes what to wait for. Returns GRADWIRE_OK: wait, then call it again.
 * It may call callbacks. The resolver of host names may block; options.connect avoids it. */
GRADWIRE_C_API gradwire_status gradwire_step(gradwire_client* client, gradwire_wait* next);

/* Tells the server that the client is alive. With GRADWIRE_NO_THREADS, call it in callbacks that take longer
 * than a few seconds; it may be called as often as you like, in callbacks alone. */
GRADWIRE_C_API gradwire_status gradwire_keep_alive(gradwire_client* client);

/* Ends gradwire_run() or the next gradwire_step() with GRADWIRE_E_CANCELLED. Any thread and signal handlers
 * may call it. A callback in progress is waited for. */
GRADWIRE_C_API void gradwire_cancel(gradwire_client* client);

/* Returns one line on the last error, or "". Valid until the next call of another function. */
GRADWIRE_C_API const char* gradwire_message(const gradwire_client* client);

GRADWIRE_C_API gradwire_status gradwire_progress_of(const gradwire_client* client,
                                                    gradwire_progress* progress);

/* Writes how many bytes of options.memory a run of this plan needs, without TLS. It runs a few rounds in this
 * process. */
GRADWIRE_C_API gradwire_status gradwire_memory_needed(const gradwire_plan* plan, uint64_t* bytes);

/* Ends the client, and frees what it has. NULL is allowed. Not in callbacks. */
GRADWIRE_C_API void gradwire_destroy(gradwire_client* client);

#ifdef __cplusplus
}
#endif
