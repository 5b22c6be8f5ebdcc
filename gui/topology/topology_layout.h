// TopologyLayout: where the parts of a cluster stand in a drawing. A pure function of the topology; units are those of the drawing.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "model/hardware/topology.h"

namespace ringside::gui {

struct Box {
    double x = 0, y = 0, width = 0, height = 0;

    double right() const { return x + width; }
    double bottom() const { return y + height; }
    double middleX() const { return x + width / 2; }
    double middleY() const { return y + height / 2; }
    bool contains(double px, double py) const { return px >= x && px <= right() && py >= y && py <= bottom(); }
};

struct PartBox {
    Topology::Vertex vertex = 0;
    VertexKind kind = VertexKind::Device;
    std::int64_t node = -1;
    Box box;
    std::string label;  ///< "GPU 3", "NIC 0", "Leaf 2"
};

struct NodeFrame {
    std::int64_t node = 0;
    Box box;
    std::string label;  ///< "Node 0 · dgx-a100-80gb"
};

/// A cable: both directions.
struct Cable {
    LinkId there = 0, back = 0;
    std::uint32_t from = 0, to = 0;  ///< into parts
};

struct TopologyLayout {
    std::vector<PartBox> parts;
    std::vector<NodeFrame> nodes;
    std::vector<Cable> cables;
    double width = 0, height = 0;
    std::int64_t nodesLeftOut = 0;  ///< beyond the most that were asked for
};

/// Nodes side by side (in rows where there are many), leaf switches above them, the spine on top. In a node: NICs, then PCIe switches
/// and processors, then devices, then the NVSwitch. Draws the first `mostNodes` nodes. O(vertices + links).
TopologyLayout layOut(const Topology& topology, std::int64_t mostNodes = 128);

/// x₁, y₁, x₂, y₂ of the line to draw for a cable.
std::array<double, 4> lineOf(const TopologyLayout& layout, const Cable& cable);

/// The part at a point, or −1; the nearest cable within `reach` of a point, or −1.
int partAt(const TopologyLayout& layout, double x, double y);
int cableAt(const TopologyLayout& layout, double x, double y, double reach);

/// "GPU 3 – NVSwitch, NVLink, 240 GB/s each way"
std::string describe(const TopologyLayout& layout, const Topology& topology, const Cable& cable);

}  // namespace ringside::gui
