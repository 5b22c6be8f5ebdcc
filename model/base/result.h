// Result: the user's or the world's fault as a value. Our own fault is a CHECK (check.h).
#pragma once

#include <string>
#include <utility>

#include <tl/expected.hpp>

namespace ringside {

/// What kind of failure; the number is the program's exit code.
enum class ErrorCode {
    AnswerIsNo = 1,         ///< the question was understood and the answer is "no" (does not fit, above the limit)
    Usage = 2,              ///< the command line is off
    BadInput = 3,           ///< a value or a file is off
    MissingCapability = 4,  ///< needs something this build or machine does not have
    RuntimeFailure = 5,     ///< a device, the network or the disk failed
};

/// `message` says what was found, what was expected and what to do; `place` is the file and JSON path, or the flag.
struct Error {
    ErrorCode code = ErrorCode::BadInput;
    std::string message;
    std::string place;

    std::string toString() const { return place.empty() ? message : place + ": " + message; }
};

template <class T>
using Result = tl::expected<T, Error>;

inline tl::unexpected<Error> badInput(std::string place, std::string message) {
    return tl::unexpected<Error>(Error{ErrorCode::BadInput, std::move(message), std::move(place)});
}
inline tl::unexpected<Error> failure(ErrorCode code, std::string place, std::string message) {
    return tl::unexpected<Error>(Error{code, std::move(message), std::move(place)});
}

}  // namespace ringside

#define RINGSIDE_CONCAT_INNER(a, b) a##b
#define RINGSIDE_CONCAT(a, b) RINGSIDE_CONCAT_INNER(a, b)
/// `TRY(auto x, f());` binds the value of a Result or returns its error from the enclosing function.
#define TRY(declaration, expression)                                                 \
    auto RINGSIDE_CONCAT(result_, __LINE__) = (expression);                          \
    if (!RINGSIDE_CONCAT(result_, __LINE__))                                         \
        return tl::unexpected<ringside::Error>(std::move(RINGSIDE_CONCAT(result_, __LINE__)).error()); \
    declaration = std::move(*RINGSIDE_CONCAT(result_, __LINE__))
/// For Result<void>, or a value that is not needed.
#define TRY_VOID(expression)                                             \
    do {                                                                 \
        auto tryResult = (expression);                                   \
        if (!tryResult) return tl::unexpected<ringside::Error>(std::move(tryResult).error()); \
    } while (false)
