// A model small enough to be trained for real in milliseconds.
#pragma once

#include "tests/cli/run_program.h"

namespace ringside {

/// Has tiny.json: a GPT-2 of 0.1 M parameters.
class WorkDirWithTinyModel : public WorkDir {
public:
    WorkDirWithTinyModel() { write("tiny.json", R"({"model_type": "gpt2", "n_embd": 64, "n_layer": 2, "n_head": 2, "n_positions": 64, "vocab_size": 256})"); }
};

}  // namespace ringside
