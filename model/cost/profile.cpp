#include "model/cost/profile.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "model/base/names.h"
#include "model/cost/measurements_json.h"
#include "model/cost/profile_fields.h"

namespace ringside {

double launchFactor(const Profile& profile, Framework framework) {
    switch (framework) {
        case Framework::PyTorch: return 1;
        case Framework::HuggingFace: return profile.huggingfaceLaunch.value;
        case Framework::TransformerEngine: return profile.transformerEngineLaunch.value;
        case Framework::Profiled: return profile.profiledLaunch.value;
    }
    return 1;
}

namespace {

constexpr std::string_view kFormat = "ringside-profile";
constexpr int kVersion = 1;

Result<Provenance> provenanceFromJson(const JsonCursor& cursor) {
    TRY(const std::string name, cursor.asString());
    std::vector<std::string> known;
    for (const Provenance p : {Provenance::Assumed, Provenance::Datasheet, Provenance::Published, Provenance::Measured}) {
        if (nameOf(p) == name) return p;
        known.emplace_back(nameOf(p));
    }
    return cursor.error(unknownName("provenance", name, known));
}

Result<Figure> figureFromJson(const JsonCursor& cursor, double min, double max) {
    Figure figure;
    if (cursor.value().is_number()) {  // the short form: only the value
        TRY(figure.value, cursor.asNumber(min, max));
        return figure;
    }
    TRY_VOID(cursor.keys({"value", "relative_spread", "provenance", "source"}));
    TRY(const JsonCursor value, cursor.at("value"));
    TRY(figure.value, value.asNumber(min, max));
    TRY(figure.relativeSpread, cursor.numberOr("relative_spread", 0, 0, 10));
    if (const auto provenance = cursor.find("provenance")) {
        TRY(figure.provenance, provenanceFromJson(*provenance));
    }
    TRY(figure.source, cursor.stringOr("source", {}));
    return figure;
}

Result<std::vector<GemmSample>> samplesFromJson(const JsonCursor& cursor) {
    constexpr std::int64_t kMaxDimension = std::int64_t{1} << 40;
    TRY(const std::vector<JsonCursor> rows, cursor.items());
    std::vector<GemmSample> samples;
    samples.reserve(rows.size());
    for (const JsonCursor& row : rows) {
        TRY_VOID(row.keys({"batch", "m", "n", "k", "tflops", "relative_spread"}));
        GemmSample sample;
        TRY(sample.shape.batch, row.intOr("batch", 1, 1, kMaxDimension));
        for (const auto& [key, field] : {std::pair{"m", &GemmShape::m}, {"n", &GemmShape::n}, {"k", &GemmShape::k}}) {
            TRY(const JsonCursor dimension, row.at(key));
            TRY(sample.shape.*field, dimension.asInt(1, kMaxDimension));
        }
        TRY(const JsonCursor tflops, row.at("tflops"));
        TRY(sample.tflops, tflops.asNumber(1e-9, 1e9));
        TRY(sample.relativeSpread, row.numberOr("relative_spread", 0, 0, 10));
        samples.push_back(sample);
    }
    return samples;
}

/// Checked by setting them on a device that is thrown away.
Result<std::map<std::string, double>> deviceFiguresFromJson(const JsonCursor& cursor) {
    TRY_VOID(cursor.keys(deviceFigureKeys()));
    std::map<std::string, double> figures;
    Device scratch;
    for (const auto& item : cursor.value().items()) {
        TRY(const JsonCursor value, cursor.at(item.key()));
        TRY(figures[item.key()], value.asNumber(0, 1e18));
        if (const auto set = setDeviceFigure(scratch, item.key(), figures[item.key()]); !set) return value.error(set.error().message);
    }
    return figures;
}

/// Names of the arithmetic types, for messages.
std::vector<std::string> arithmeticTypeNames() {
    std::vector<std::string> names;
    for (const DType type : kArithmeticTypes) names.emplace_back(nameOf(type));
    return names;
}

Result<void> readInto(Profile& profile, const JsonCursor& cursor) {
    TRY_VOID(cursor.keys({"format", "version", "name", "device", "created", "tool_version", "command", "environment", "notes", "figures",
                          "gemm_efficiency", "gemm_table", "kernels", "collectives", "device_figures", "steps"}));
    TRY(const JsonCursor format, cursor.at("format"));
    TRY(const std::string formatName, format.asString());
    if (formatName != kFormat) return format.error(fmt::format("expected '{}', found '{}'; this is not a profile", kFormat, formatName));
    TRY(const JsonCursor version, cursor.at("version"));
    TRY_VOID(version.asInt(kVersion, kVersion));
    TRY(profile.name, cursor.stringOr("name", profile.name));
    TRY(profile.device, cursor.stringOr("device", profile.device));

    if (const auto figures = cursor.find("figures")) {
        std::vector<std::string> known;
        for (const ProfileField& field : kProfileFields) known.emplace_back(field.key);
        TRY_VOID(figures->keys(known));
        for (const ProfileField& field : kProfileFields) {
            const auto found = figures->find(field.key);
            if (!found) continue;
            TRY(profile.*field.figure, figureFromJson(*found, field.min, field.max));
        }
    }
    if (const auto efficiency = cursor.find("gemm_efficiency")) {
        TRY_VOID(efficiency->keys(arithmeticTypeNames()));
        for (const DType type : kArithmeticTypes) {
            const auto found = efficiency->find(nameOf(type));
            if (!found) continue;
            TRY(profile.gemmEfficiency[type], figureFromJson(*found, 0.001, kMaxEfficiency));
        }
    }
    if (const auto table = cursor.find("gemm_table")) {
        TRY_VOID(table->keys(arithmeticTypeNames()));
        for (const DType type : kArithmeticTypes) {
            const auto found = table->find(nameOf(type));
            if (!found) continue;
            TRY(profile.gemmTable[type], samplesFromJson(*found));
        }
    }
    if (const auto kernels = cursor.find("kernels")) {
        TRY(profile.kernels, kernelPointsFromJson(*kernels));
    }
    if (const auto collectives = cursor.find("collectives")) {
        TRY(profile.collectives, collectiveCurvesFromJson(*collectives));
    }
    if (const auto figures = cursor.find("device_figures")) {
        TRY(profile.deviceFigures, deviceFiguresFromJson(*figures));
    }
    if (const auto steps = cursor.find("steps")) {
        TRY(profile.steps, referenceStepsFromJson(*steps));
    }
    if (const auto environment = cursor.find("environment")) {
        TRY(profile.environment, environmentFromJson(*environment));
    }
    return {};
}

Json figureToJson(const Figure& figure) {
    Json json{{"value", figure.value}, {"relative_spread", figure.relativeSpread}, {"provenance", std::string(nameOf(figure.provenance))}};
    if (!figure.source.empty()) json["source"] = figure.source;
    return json;
}

Json gemmTableToJson(const Profile& profile) {
    Json table = Json::object();
    for (const auto& [type, samples] : profile.gemmTable) {
        Json& rows = table[std::string(nameOf(type))] = Json::array();
        for (const GemmSample& sample : samples) {
            const GemmShape& shape = sample.shape;
            Json row{{"batch", shape.batch}, {"m", shape.m}, {"n", shape.n}, {"k", shape.k}, {"tflops", sample.tflops}};
            if (sample.relativeSpread > 0) row["relative_spread"] = sample.relativeSpread;
            rows.push_back(std::move(row));
        }
    }
    return table;
}

}  // namespace

std::string_view nameOf(Provenance provenance) {
    switch (provenance) {
        case Provenance::Assumed: return "assumed";
        case Provenance::Datasheet: return "datasheet";
        case Provenance::Published: return "published";
        case Provenance::Measured: return "measured";
    }
    return "?";
}

Result<Device> withMeasuredFigures(Device device, const Profile& profile) {
    const Json known = toJson(device);
    for (const auto& [key, value] : profile.deviceFigures) {
        const auto dot = key.find('.');
        const auto group = known.find(key.substr(0, dot));
        const Json* given = group == known.end() ? nullptr : &*group;
        if (given && dot != std::string::npos) {
            const auto inner = given->find(key.substr(dot + 1));
            given = inner == given->end() ? nullptr : &*inner;
        }
        // Memory has two keys: what a process sees wins, so that it must not hide a size that the user gave.
        const bool memory = key.starts_with("memory_") && (key == "memory_gb" || key == "memory_bytes");
        const bool taken = memory ? device.memoryGb || device.memoryBytes : given && !given->is_null();
        if (!taken) TRY_VOID(setDeviceFigure(device, key, value));
    }
    return device;
}

std::vector<std::string> profileFigureKeys() {
    std::vector<std::string> keys;
    for (const ProfileField& field : kProfileFields) keys.emplace_back(field.key);
    for (const DType type : kArithmeticTypes) keys.push_back(std::string(kGemmEfficiencyPrefix) + std::string(nameOf(type)));
    return keys;
}

const Figure* findProfileFigure(const Profile& profile, std::string_view key) {
    for (const ProfileField& field : kProfileFields)
        if (field.key == key) return &(profile.*field.figure);
    if (!key.starts_with(kGemmEfficiencyPrefix)) return nullptr;
    const auto type = arithmeticTypeByName(key.substr(kGemmEfficiencyPrefix.size()));
    const auto found = type ? profile.gemmEfficiency.find(*type) : profile.gemmEfficiency.end();
    return found == profile.gemmEfficiency.end() ? nullptr : &found->second;
}

Figure* findProfileFigure(Profile& profile, std::string_view key) { return const_cast<Figure*>(findProfileFigure(std::as_const(profile), key)); }

Result<void> setProfileFigure(Profile& profile, std::string_view key, double value) {
    const std::string place = "profile." + std::string(key);
    const Figure figure{value, 0, Provenance::Assumed, "set by hand"};
    const auto inRange = [&](double min, double max) -> Result<void> {
        if (value >= min && value <= max) return {};  // false for NaN
        return badInput(place, fmt::format("{} is out of range; expected {:g} to {:g}", value, min, max));
    };
    for (const ProfileField& field : kProfileFields) {
        if (field.key != key) continue;
        TRY_VOID(inRange(field.min, field.max));
        profile.*field.figure = figure;
        return {};
    }
    if (key.starts_with(kGemmEfficiencyPrefix)) {
        if (const auto type = arithmeticTypeByName(key.substr(kGemmEfficiencyPrefix.size()))) {
            TRY_VOID(inRange(0.001, kMaxEfficiency));
            profile.gemmEfficiency[*type] = figure;
            return {};
        }
    }
    return badInput(place, unknownName("figure of a profile", key, profileFigureKeys()));
}

Result<Profile> profileFromJson(const JsonCursor& cursor, const Profile& base) {
    Profile profile = base;
    TRY_VOID(readInto(profile, cursor));
    return profile;
}

Result<Profile> profileFromJson(const JsonCursor& cursor) {
    Profile profile;
    TRY_VOID(readInto(profile, cursor));
    TRY(const JsonCursor figures, cursor.at("figures"));
    for (const ProfileField& field : kProfileFields)
        if (!figures.find(field.key)) return figures.error(fmt::format("the key '{}' is missing; a profile that another version has written is measured anew with ringside calibrate", field.key));
    TRY_VOID(cursor.at("gemm_efficiency"));
    return profile;
}

Json toJson(const Profile& profile) {
    Json json{{"format", kFormat}, {"version", kVersion}, {"name", profile.name}, {"device", profile.device}};
    Json& figures = json["figures"] = Json::object();
    for (const ProfileField& field : kProfileFields) figures[std::string(field.key)] = figureToJson(profile.*field.figure);
    Json& efficiency = json["gemm_efficiency"] = Json::object();
    for (const auto& [type, figure] : profile.gemmEfficiency) efficiency[std::string(nameOf(type))] = figureToJson(figure);
    if (!profile.gemmTable.empty()) json["gemm_table"] = gemmTableToJson(profile);
    if (!profile.kernels.empty()) json["kernels"] = toJson(profile.kernels);
    if (!profile.collectives.empty()) json["collectives"] = toJson(profile.collectives);
    if (!profile.deviceFigures.empty()) json["device_figures"] = profile.deviceFigures;
    if (!profile.steps.empty()) json["steps"] = toJson(profile.steps);
    if (profile.environment) json["environment"] = toJson(*profile.environment);
    return json;
}

}  // namespace ringside
