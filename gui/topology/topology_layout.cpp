#include "gui/topology/topology_layout.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numbers>

#include <fmt/format.h>

namespace ringside::gui {
namespace {

constexpr double kDeviceWidth = 62, kDeviceHeight = 34, kColumn = 78;
constexpr double kSmallWidth = 50, kSmallHeight = 22, kBarHeight = 24;
constexpr double kRowGap = 34, kPadding = 16, kTitle = 24, kNodeGap = 40;
constexpr std::int64_t kMostInARow = 8;

using Parts = std::vector<std::uint32_t>;  // indices into TopologyLayout::parts

std::string labelOf(const TopologyVertex& vertex, const Cluster& cluster) {
    switch (vertex.kind) {
        case VertexKind::Device: return fmt::format("{} {}", cluster.nodes[cluster.groupOf(vertex.index)].kind.fabric == IntraNodeFabric::Loopback ? "Rank" : "GPU", vertex.index);
        case VertexKind::NvSwitch: return "NVSwitch";
        case VertexKind::PcieSwitch: return fmt::format("PCIe {}", vertex.index);
        case VertexKind::Cpu: return fmt::format("CPU {}", vertex.index);
        case VertexKind::Nic: return fmt::format("NIC {}", vertex.index);
        case VertexKind::LeafSwitch: return fmt::format("Leaf {}", vertex.index);
        case VertexKind::SpineSwitch: return "Spine";
    }
    return "?";
}

/// Evenly over [x, x + width), each in the middle of its share.
void spread(TopologyLayout& layout, const Parts& parts, double x, double y, double width, double boxWidth, double boxHeight) {
    const double share = width / static_cast<double>(std::max<std::size_t>(parts.size(), 1));
    const double fitting = std::min(boxWidth, share - 6);
    for (std::size_t i = 0; i < parts.size(); ++i)
        layout.parts[parts[i]].box = {x + share * (static_cast<double>(i) + 0.5) - fitting / 2, y, fitting, boxHeight};
}

/// What stands in one node, by kind.
struct NodeParts {
    std::map<VertexKind, Parts> of;
    bool mesh = false;  ///< devices are joined directly

    const Parts& operator[](VertexKind kind) const {
        static const Parts none;
        const auto found = of.find(kind);
        return found == of.end() ? none : found->second;
    }
};

class NodeDrawer {
public:
    NodeDrawer(TopologyLayout& layout, const NodeParts& node) : layout_(layout), node_(node) {
        const auto devices = static_cast<std::int64_t>(node[VertexKind::Device].size());
        columns_ = devices <= kMostInARow ? std::max<std::int64_t>(devices, 1) : static_cast<std::int64_t>(std::ceil(std::sqrt(static_cast<double>(devices) * 2)));
        radius_ = std::max(70.0, static_cast<double>(devices) * 20);
        inner_ = node.mesh ? 2 * radius_ * 1.35 + kDeviceWidth : kColumn * static_cast<double>(columns_);
        inner_ = std::max({inner_, 64.0 * static_cast<double>(node[VertexKind::Nic].size()) * 0.9, 150.0});
    }

    double width() const { return inner_ + 2 * kPadding; }

    /// Returns the bottom.
    double draw(double x, double y) {
        double row = y + kTitle + 6;
        const double left = x + kPadding;
        for (const auto& [kind, height] : {std::pair{VertexKind::Nic, kSmallHeight}, std::pair{VertexKind::Cpu, kSmallHeight}, std::pair{VertexKind::PcieSwitch, kSmallHeight}}) {
            if (node_[kind].empty()) continue;
            spread(layout_, node_[kind], left, row, inner_, kind == VertexKind::PcieSwitch ? 2 * kSmallWidth : kSmallWidth, height);
            row += height + kRowGap;
        }
        row = node_.mesh ? drawCircle(left, row) : drawRows(left, row);
        if (!node_[VertexKind::NvSwitch].empty()) {
            row += kRowGap;
            spread(layout_, node_[VertexKind::NvSwitch], left, row, inner_, inner_, kBarHeight);
            row += kBarHeight;
        }
        return row + kPadding;
    }

private:
    double drawRows(double left, double row) {
        const Parts& devices = node_[VertexKind::Device];
        for (std::size_t first = 0; first < devices.size(); first += static_cast<std::size_t>(columns_)) {
            const std::size_t count = std::min(devices.size() - first, static_cast<std::size_t>(columns_));
            const double share = inner_ / static_cast<double>(columns_);
            const Parts line(devices.begin() + static_cast<std::ptrdiff_t>(first), devices.begin() + static_cast<std::ptrdiff_t>(first + count));
            if (first > 0) row += kSmallHeight;
            spread(layout_, line, left, row, share * static_cast<double>(count), kDeviceWidth, kDeviceHeight);
            row += kDeviceHeight;
        }
        return row;
    }

    /// On an ellipse, so that every link of a mesh can be seen.
    double drawCircle(double left, double row) {
        const Parts& devices = node_[VertexKind::Device];
        const double middleX = left + inner_ / 2, middleY = row + radius_ + kDeviceHeight / 2;
        for (std::size_t i = 0; i < devices.size(); ++i) {
            const double angle = 2 * std::numbers::pi * (static_cast<double>(i) + 0.5) / static_cast<double>(devices.size()) - std::numbers::pi / 2;
            layout_.parts[devices[i]].box = {middleX + 1.35 * radius_ * std::cos(angle) - kDeviceWidth / 2, middleY + radius_ * std::sin(angle) - kDeviceHeight / 2, kDeviceWidth, kDeviceHeight};
        }
        return row + 2 * radius_ + kDeviceHeight;
    }

    TopologyLayout& layout_;
    const NodeParts& node_;
    std::int64_t columns_ = 1;
    double inner_ = 0, radius_ = 0;
};

double distanceToSegment(double px, double py, const std::array<double, 4>& line) {
    const double dx = line[2] - line[0], dy = line[3] - line[1], square = dx * dx + dy * dy;
    const double at = square > 0 ? std::clamp(((px - line[0]) * dx + (py - line[1]) * dy) / square, 0.0, 1.0) : 0;
    return std::hypot(px - line[0] - at * dx, py - line[1] - at * dy);
}

}  // namespace

TopologyLayout layOut(const Topology& topology, std::int64_t mostNodes) {
    const Cluster& cluster = topology.cluster();
    const TopologyGraph& graph = topology.graph();
    const std::int64_t shown = std::min(cluster.nodeCount(), std::max<std::int64_t>(mostNodes, 1));
    TopologyLayout layout;
    layout.nodesLeftOut = cluster.nodeCount() - shown;

    std::vector<NodeParts> nodes(static_cast<std::size_t>(shown));
    Parts leaves, spines;
    std::map<Topology::Vertex, std::uint32_t> partOf;
    for (Topology::Vertex v = 0; v < num_vertices(graph); ++v) {
        const TopologyVertex& vertex = graph[v];
        if (vertex.node >= shown) continue;
        const auto part = static_cast<std::uint32_t>(layout.parts.size());
        partOf[v] = part;
        layout.parts.push_back({v, vertex.kind, vertex.node, {}, labelOf(vertex, cluster)});
        if (vertex.kind == VertexKind::LeafSwitch) leaves.push_back(part);
        else if (vertex.kind == VertexKind::SpineSwitch) spines.push_back(part);
        else nodes[static_cast<std::size_t>(vertex.node)].of[vertex.kind].push_back(part);
    }
    std::map<std::pair<Topology::Vertex, Topology::Vertex>, std::size_t> cableOf;
    for (LinkId id = 0; id < topology.linkCount(); ++id) {
        const auto from = partOf.find(topology.from(id)), to = partOf.find(topology.to(id));
        if (from == partOf.end() || to == partOf.end()) continue;
        if (graph[from->first].kind == VertexKind::Device && graph[to->first].kind == VertexKind::Device) nodes[static_cast<std::size_t>(graph[from->first].node)].mesh = true;
        if (const auto other = cableOf.find({to->first, from->first}); other != cableOf.end()) {
            layout.cables[other->second].back = id;
            continue;
        }
        cableOf[{from->first, to->first}] = layout.cables.size();
        layout.cables.push_back({id, id, from->second, to->second});
    }

    // Room above for the switches between nodes; then nodes in rows, about as wide as a screen.
    double top = 0;
    if (!spines.empty()) top += kBarHeight + kRowGap * 1.6;
    if (!leaves.empty()) top += kSmallHeight + kRowGap * 1.8;
    TopologyLayout probe = layout;
    NodeDrawer first(probe, nodes.front());
    const double height = first.draw(0, 0), width = first.width();
    const double wanted = std::sqrt(static_cast<double>(shown) * 16 / 9 * height / width);
    const std::int64_t columns = shown <= 4 ? shown : std::clamp<std::int64_t>(static_cast<std::int64_t>(std::ceil(wanted)), 1, shown);
    double x = 0, y = top, rowBottom = top;
    for (std::int64_t n = 0; n < shown; ++n) {
        if (n > 0 && n % columns == 0) {
            x = 0;
            y = rowBottom + kNodeGap;
        }
        NodeDrawer drawer(layout, nodes[static_cast<std::size_t>(n)]);
        const double bottom = drawer.draw(x, y);
        std::int64_t before = 0;
        const auto group = std::find_if(cluster.nodes.begin(), cluster.nodes.end(), [&](const NodeGroup& g) { return (before += g.count) > n; });
        layout.nodes.push_back({n, {x, y, drawer.width(), bottom - y}, fmt::format("Node {} · {}", n, group->kind.name.empty() ? group->kind.device.name : group->kind.name)});
        x += drawer.width() + kNodeGap;
        layout.width = std::max(layout.width, x - kNodeGap);
        rowBottom = std::max(rowBottom, bottom);
        layout.height = rowBottom;
    }
    if (!spines.empty()) spread(layout, spines, 0, 0, layout.width, layout.width, kBarHeight);
    if (!leaves.empty()) spread(layout, leaves, 0, top - kSmallHeight - kRowGap * 1.8, layout.width, 2 * kSmallWidth, kSmallHeight);
    return layout;
}

std::array<double, 4> lineOf(const TopologyLayout& layout, const Cable& cable) {
    const Box &a = layout.parts[cable.from].box, &b = layout.parts[cable.to].box;
    const bool direct = layout.parts[cable.from].kind == layout.parts[cable.to].kind;  // of a mesh, or between sockets
    if (direct) return {a.middleX(), a.middleY(), b.middleX(), b.middleY()};
    // From the border that faces the other; a wide bar is met right above or below it.
    const auto end = [](const Box& own, const Box& other) -> std::pair<double, double> {
        const double x = own.width > 1.5 * other.width ? std::clamp(other.middleX(), own.x + 4, own.right() - 4) : own.middleX();
        return {x, own.y >= other.bottom() ? own.y : own.bottom() <= other.y ? own.bottom() : own.middleY()};
    };
    const auto [ax, ay] = end(a, b);
    const auto [bx, by] = end(b, a);
    return {ax, ay, bx, by};
}

int partAt(const TopologyLayout& layout, double x, double y) {
    for (std::size_t i = 0; i < layout.parts.size(); ++i)
        if (layout.parts[i].box.contains(x, y)) return static_cast<int>(i);
    return -1;
}

int cableAt(const TopologyLayout& layout, double x, double y, double reach) {
    int nearest = -1;
    double least = reach;
    for (std::size_t i = 0; i < layout.cables.size(); ++i) {
        const double distance = distanceToSegment(x, y, lineOf(layout, layout.cables[i]));
        if (distance > least) continue;
        least = distance;
        nearest = static_cast<int>(i);
    }
    return nearest;
}

std::string describe(const TopologyLayout& layout, const Topology& topology, const Cable& cable) {
    const TopologyLink& link = topology.link(cable.there);
    return fmt::format("{} – {}: {}, {:.4g} GB/s each way", layout.parts[cable.from].label, layout.parts[cable.to].label, nameOf(link.kind), link.bytesPerS / 1e9);
}

}  // namespace ringside::gui
