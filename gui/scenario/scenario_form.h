// ScenarioForm: a scenario document as a list of fields that a person can edit. Nothing here knows a widget.
//
// Every field comes from a table that reading scenarios uses too (scenario_keys.h, Strategy::knobs, parallel_knobs.h, the
// catalogues): range, unit, choices, default and help are never written a second time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/base/json_cursor.h"
#include "model/base/result.h"
#include "model/base/value_spec.h"
#include "sim/scenario.h"

namespace ringside::gui {

enum class FieldGroup : std::uint8_t { Model, Hardware, Training, Strategy, Mesh, Collectives, Chance, WhatIf };
constexpr int kFieldGroups = 8;
std::string_view nameOf(FieldGroup group);  ///< "Model", "Device mesh", …

struct FieldChoice {
    std::string value;   ///< "a100-80gb-sxm"
    std::string detail;  ///< "A100-SXM4-80GB, 80 GB"; may be empty
};

struct FormField {
    std::string path;                  ///< "strategy.bucket_mb"
    std::string label;                 ///< "Bucket MiB" without its unit: "Bucket"
    FieldGroup group = FieldGroup::Model;
    ValueSpec spec;
    std::vector<FieldChoice> choices;  ///< of names and words
    bool otherTextAllowed = false;     ///< a path may stand instead of a choice
    std::string defaultText;           ///< as the table says it; empty: the key is needed, or nothing is meant without it
    std::string help;
};

/// What is wrong, and at which field. `path` is empty where it is about the scenario as a whole.
struct FormError {
    std::string path, message;
};

class ScenarioForm {
public:
    /// An empty document gets a model and a device, so that there is something to look at.
    explicit ScenarioForm(std::shared_ptr<const Catalogs> catalogs, Json document = Json::object());

    const Json& document() const { return document_; }
    /// A result document counts as the scenario that it answers. Fails for what is no scenario; the form then stays as it was.
    Result<void> setDocument(Json document);

    /// The fields that this document can have: those of the chosen strategy included, in the order to show them.
    const std::vector<FormField>& fields() const { return fields_; }
    const FormField* find(std::string_view path) const;

    /// Whether the document itself says it.
    bool isGiven(std::string_view path) const;
    /// What applies: as given, else as the scenario resolves (null where neither says).
    Json shown(std::string_view path) const;

    /// Puts the value into the document; what contradicts it makes room. Null resets. Never fails: what is wrong, error() says.
    void set(const std::string& path, const Json& value);
    /// The default again.
    void reset(const std::string& path) { set(path, nullptr); }

    /// The resolved scenario; null where error() has something to say.
    const std::shared_ptr<const Scenario>& scenario() const { return scenario_; }
    const std::optional<FormError>& error() const { return error_; }
    /// The same for an error of a later stage (predict).
    FormError located(const Error& error) const;

private:
    void resolve();
    void listFields();
    void moveToDevices();

    std::shared_ptr<const Catalogs> catalogs_;
    Json document_;
    std::vector<FormField> fields_;
    std::shared_ptr<const Scenario> scenario_;  ///< of the document
    Json resolved_;                             ///< the last one that resolved, in full
    std::string resolvedStrategy_;
    std::optional<FormError> error_;
};

/// What a person typed into a field of this kind: JSON where it parses as such, "a, b" as a list for lists, else text. Empty: null.
Json valueOfText(const ValueSpec& spec, const std::string& text);
/// The inverse, for showing. Null: "".
std::string textOfValue(const Json& value);

}  // namespace ringside::gui
