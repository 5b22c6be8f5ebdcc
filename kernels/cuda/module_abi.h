// The C interface of ringside-cuda.so: one table of functions, plain structs, errors as codes with a text.
//
// The program never links CUDA. It opens the module, asks ringsideCudaModule() for the table and refuses another version. Every
// function is called from any thread, selects its device itself, and leaves its outputs untouched when it fails. Handles are
// opaque; a stream handle is a cudaStream_t. Texts end in a zero and are cut where they are too long.
#pragma once

#include <stddef.h>
#include <stdint.h>

/// Raise it with any change of this file.
#define RINGSIDE_CUDA_ABI_VERSION 1u
#define RINGSIDE_CUDA_ENTRY "ringsideCudaModule"
#define RINGSIDE_UNIQUE_ID_BYTES 128

#ifdef __cplusplus
extern "C" {
#endif

enum RingsideCode {
    RingsideOk = 0,
    RingsideBadInput = 1,           ///< shapes, types or operands that an op does not take
    RingsideMissingCapability = 2,  ///< no driver, no device
    RingsideFailure = 3,            ///< a call of CUDA, cuBLASLt, cuDNN or NCCL failed
    RingsideOutOfMemory = 4,
    RingsideInProgress = 5,         ///< not done yet, no error: ask again
};

typedef struct RingsideText {
    char text[512];
} RingsideText;

typedef struct RingsideCudaDevice RingsideCudaDevice;
typedef struct RingsideCudaComm RingsideCudaComm;

typedef struct RingsideDeviceInfo {
    char name[256];
    char libraries[256];
    int64_t memoryBytes;
} RingsideDeviceInfo;

/// KernelCall (kernels/kernel_call.h) as it crosses the border; `op` and `dtype` are the numbers of its enums, `name` the op's.
typedef struct RingsideKernel {
    uint32_t op, dtype;
    const char* name;
    const void* in[6];
    void* out[4];
    int64_t dims[12];
    double scalars[6];
} RingsideKernel;

/// What a communicator is told to do. `peer` is the root, or whom to send to or receive from; `elements` as in
/// calibrate/comm/communicator.h. In place where `input` and `output` say so, by NCCL's rules.
enum RingsideCollective {
    RingsideAllReduce,
    RingsideAllGather,
    RingsideReduceScatter,
    RingsideBroadcast,
    RingsideReduce,
    RingsideSend,
    RingsideReceive,
    RingsideBarrier,
};
typedef struct RingsideCollectiveCall {
    uint32_t kind, dtype;
    const void* input;
    void* output;
    int64_t elements;
    int32_t peer;
    int32_t average;  ///< the mean over ranks instead of the sum
} RingsideCollectiveCall;

typedef struct RingsideCudaModule {
    uint32_t version;  ///< RINGSIDE_CUDA_ABI_VERSION; always the first field
    uint32_t size;     ///< of this struct

    int (*deviceCount)(int* count, RingsideText* error);
    int (*createDevice)(int ordinal, RingsideCudaDevice** device, RingsideText* error);
    void (*destroyDevice)(RingsideCudaDevice* device);
    int (*deviceInfo)(RingsideCudaDevice* device, RingsideDeviceInfo* info, RingsideText* error);
    int (*synchronize)(RingsideCudaDevice* device, RingsideText* error);

    int (*allocate)(RingsideCudaDevice* device, int64_t bytes, void** memory, RingsideText* error);
    int (*release)(RingsideCudaDevice* device, void* memory, RingsideText* error);

    int (*createStream)(RingsideCudaDevice* device, const char* name, void** stream, RingsideText* error);
    int (*destroyStream)(RingsideCudaDevice* device, void* stream, RingsideText* error);

    int (*createEvent)(RingsideCudaDevice* device, void** event, RingsideText* error);
    int (*destroyEvent)(RingsideCudaDevice* device, void* event, RingsideText* error);
    int (*recordEvent)(RingsideCudaDevice* device, void* event, void* stream, RingsideText* error);
    int (*waitEvent)(RingsideCudaDevice* device, void* stream, void* event, RingsideText* error);
    int (*waitEventOnHost)(RingsideCudaDevice* device, void* event, RingsideText* error);
    /// RingsideOk: reached; RingsideInProgress: not yet.
    int (*queryEvent)(RingsideCudaDevice* device, void* event, RingsideText* error);
    /// Nanoseconds from one event to another; both reached.
    int (*elapsed)(RingsideCudaDevice* device, void* from, void* to, int64_t* nanoseconds, RingsideText* error);

    int (*run)(RingsideCudaDevice* device, void* stream, const RingsideKernel* kernel, RingsideText* error);
    int (*copyIn)(RingsideCudaDevice* device, void* stream, void* to, const void* from, int64_t bytes, RingsideText* error);
    int (*copyOut)(RingsideCudaDevice* device, void* stream, void* to, const void* from, int64_t bytes, RingsideText* error);

    /// An NVTX range on the calling thread; ranges nest.
    void (*pushRange)(const char* name);
    void (*popRange)(void);

    /// NCCL. A communicator is made without blocking: commCreate starts, commQuery says when it is ready (RingsideOk), still at it
    /// (RingsideInProgress), or failed; so it does for collectives, whose call may also return RingsideInProgress.
    int (*uniqueId)(unsigned char id[RINGSIDE_UNIQUE_ID_BYTES], RingsideText* error);
    int (*commCreate)(RingsideCudaDevice* device, const unsigned char id[RINGSIDE_UNIQUE_ID_BYTES], int rank, int size,
                      const char* name, RingsideCudaComm** comm, RingsideText* error);
    int (*commQuery)(RingsideCudaComm* comm, RingsideText* error);
    int (*commCollective)(RingsideCudaComm* comm, void* stream, const RingsideCollectiveCall* call, RingsideText* error);
    /// Ends what runs. The handle stays until commDestroy; every other call on it fails. A second abort does nothing.
    int (*commAbort)(RingsideCudaComm* comm, RingsideText* error);
    int (*commDestroy)(RingsideCudaComm* comm, RingsideText* error);
} RingsideCudaModule;

/// The one symbol of the module.
typedef const RingsideCudaModule* (*RingsideCudaEntry)(void);

#ifdef __cplusplus
}
#endif
