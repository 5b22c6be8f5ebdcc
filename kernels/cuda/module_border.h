// How a Result leaves the module: a code, and its text where there is one.
#pragma once

#include <cstdio>
#include <exception>

#include "kernels/cuda/module_abi.h"
#include "model/base/result.h"

namespace ringside::cuda {

inline int reported(int code, const std::string& text, RingsideText* error) {
    if (error != nullptr) std::snprintf(error->text, sizeof error->text, "%s", text.c_str());
    return code;
}

inline int codeOf(const Error& error) {
    switch (error.code) {
        case ErrorCode::BadInput: return RingsideBadInput;
        case ErrorCode::MissingCapability: return RingsideMissingCapability;
        default: return RingsideFailure;
    }
}

/// Runs `body` (a Result<void>) and turns its error, or an exception, into a code: nothing is thrown across a C border.
template <class Body>
int atBorder(RingsideText* error, Body body) noexcept {
    try {
        const Result<void> result = body();
        return result ? static_cast<int>(RingsideOk) : reported(codeOf(result.error()), result.error().toString(), error);
    } catch (const std::exception& exception) {
        return reported(RingsideFailure, exception.what(), error);
    }
}

}  // namespace ringside::cuda
