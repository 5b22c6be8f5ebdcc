// Benchmarks of the GUI: widgets need an application; it draws into memory.
#include <QApplication>

#include <benchmark/benchmark.h>

#include "model/base/heap.h"

int main(int argc, char** argv) {
    qputenv("QT_QPA_PLATFORM", "offscreen");
    ringside::keepFreedMemory();  // as the program does
    QApplication application(argc, argv);
    benchmark::Initialize(&argc, argv);
    benchmark::RunSpecifiedBenchmarks();
    return 0;
}
