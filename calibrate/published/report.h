// The verdict for people and for programs: summaries by group, rows, what was skipped and why.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "calibrate/published/judge.h"

namespace ringside {

/// Groups in the order in which they are shown: "all training", "class:…", "family:…", "device:…", "strategy:…", "cause:…" (what most of the
/// predicted time is made of), and the same of collectives and memory with their name in front ("collectives device:h200"). With `heldOut`
/// by the held-out judgements; rows without one are left out.
std::vector<std::pair<std::string, GroupSummary>> groupsOf(const PublishedVerdict& verdict, bool heldOut = false);

/// "format": "ringside-published"; docs/reference/published.schema.json.
Json publishedJson(const PublishedVerdict& verdict);
/// A line for each row, then those that were skipped with their reason.
std::string publishedCsv(const PublishedVerdict& verdict);
/// Tables for a terminal.
std::string publishedText(const PublishedVerdict& verdict);
/// The same tables in Markdown.
std::string publishedMarkdown(const PublishedVerdict& verdict);
/// Predicted over measured, both axes logarithmic, with lines at ±10 %: the training rows; without any, the collectives; else memory.
std::string publishedScatter(const PublishedVerdict& verdict);

/// `document` with the text between its markers replaced. Error (bad input, naming `place`): it has no markers.
Result<std::string> withSection(const std::string& document, const std::string& section, const std::string& place);

}  // namespace ringside
