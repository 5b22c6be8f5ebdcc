// The strings of the stand-in for CUDA's libraries: what tests pull to make things go wrong, and the log of what was called.
//
// The stand-in has no GPU. It is four small libraries with the names of cudart, cuBLASLt, cuDNN and NCCL, whose "device" memory is
// the host's: products and convolutions are plain loops, streams do everything at once, and kernels of our own .cu files are
// recorded but never run. It shows that the module's host code makes the right calls in the right order. It says nothing of GPUs.
#pragma once

#include <cstdint>

extern "C" {

/// One line per call since the last clear, with small numbers for streams and events in the order in which they were made:
/// "cudaEventRecord event 2 stream 1". Valid until the next call.
const char* standInLog();
void standInClearLog();
/// Adds a line; for the other libraries.
void standInNote(const char* line);

/// What cudaGetDeviceCount finds; −1: no driver.
void standInSetDevices(int count);
/// How much cudaMalloc has to give.
void standInSetMemory(std::int64_t bytes);
/// How much of it is given out.
std::int64_t standInMemoryInUse();
/// The next call of this function returns `code` without doing anything.
void standInFailNext(const char* function, int code);
/// True once if that call was to fail; `code` is set. For the other libraries.
bool standInFails(const char* function, int* code);

/// What is put on the stream from here on stays unfinished, until it is let go.
void standInHold(void* stream);
void standInLetGo(void* stream);
/// 0 for the default stream, or the number in the log.
int standInStreamNumber(void* stream);

/// How the stand-in for NCCL behaves from here on.
enum StandInNccl {
    StandInNcclWorks = 0,        ///< as if every rank passed what this one passes
    StandInNcclNeverConnects,    ///< a communicator stays in progress
    StandInNcclNeverFinishes,    ///< operations hold their stream until the abort
    StandInNcclFailsLater,       ///< operations hold their stream, and an error comes in the background
    StandInNcclSlowToTake,       ///< every operation is in progress for a few queries
};
void standInSetNccl(int mode);  ///< in the stand-in for NCCL
}
