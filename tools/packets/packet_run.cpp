#include "packet_run.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include <ns3/core-module.h>
#include <ns3/internet-module.h>
#include <ns3/network-module.h>
#include <ns3/point-to-point-module.h>
#include <ns3/traffic-control-module.h>

namespace foretoken {
namespace {

constexpr double warm_up_seconds = 0.01;  // in which connections are opened
constexpr uint16_t port = 5000;
constexpr uint8_t interactive = 0x10;                 // type of service: low delay
constexpr uint32_t first_cable_address = 0x0a000000;  // 10.0.0.0: two for each cable
constexpr uint32_t first_flow_address = 0x64000000;   // 100.0.0.0: two for each flow

ns3::Time seconds(double value) {
  return ns3::PicoSeconds(std::llround(value * 1e12));
}

// A sender that keeps its socket's buffer full, and a receiver that counts.
class Connection {
 public:
  Connection(ns3::Ptr<ns3::Socket> sender, ns3::Ptr<ns3::Socket> listener, double bytes)
      : sender_(sender), left_to_send_(static_cast<int64_t>(bytes)), left_to_receive_(left_to_send_) {
    listener->SetAcceptCallback(ns3::MakeNullCallback<bool, ns3::Ptr<ns3::Socket>, const ns3::Address&>(),
                                ns3::MakeCallback(&Connection::accept, this));
    sender_->SetSendCallback(ns3::MakeCallback(&Connection::on_room, this));
  }

  void open(ns3::InetSocketAddress to) { sender_->Connect(to); }

  void start() {
    started_ = true;
    fill();
  }

  double end_seconds() const { return end_seconds_; }

 private:
  void accept(ns3::Ptr<ns3::Socket> socket, const ns3::Address&) {
    socket->SetIpTos(interactive);  // acknowledgements overtake data
    socket->SetRecvCallback(ns3::MakeCallback(&Connection::receive, this));
    receiver_ = socket;
  }

  void on_room(ns3::Ptr<ns3::Socket>, uint32_t) { fill(); }

  void fill() {
    while (started_ && left_to_send_ > 0) {
      const auto room = static_cast<int64_t>(sender_->GetTxAvailable());
      const auto size = static_cast<uint32_t>(std::min({left_to_send_, room, int64_t{1} << 16}));
      if (size == 0) return;
      const int sent = sender_->Send(ns3::Create<ns3::Packet>(size));
      if (sent <= 0) return;
      left_to_send_ -= sent;
    }
  }

  void receive(ns3::Ptr<ns3::Socket> socket) {
    while (const ns3::Ptr<ns3::Packet> packet = socket->Recv()) {
      left_to_receive_ -= packet->GetSize();
      if (left_to_receive_ == 0) end_seconds_ = ns3::Simulator::Now().GetSeconds() - warm_up_seconds;
    }
  }

  ns3::Ptr<ns3::Socket> sender_, receiver_;
  int64_t left_to_send_, left_to_receive_;
  bool started_ = false;
  double end_seconds_ = -1;
};

// The network cards at the two ends of a cable, as numbers of interfaces of their nodes.
struct Attached {
  uint32_t interfaces[2];
};

ns3::Ptr<ns3::Ipv4> ipv4_of(ns3::Ptr<ns3::Node> node) {
  return node->GetObject<ns3::Ipv4>();
}

Attached attach(const Cable& cable, uint32_t number, const ns3::NodeContainer& nodes) {
  ns3::PointToPointHelper helper;
  helper.SetChannelAttribute("Delay", ns3::TimeValue(seconds(cable.latency_seconds)));
  // Packets wait in the queue above the card, which is endless and lets acknowledgements pass.
  helper.SetQueue("ns3::DropTailQueue<Packet>", "MaxSize", ns3::QueueSizeValue(ns3::QueueSize("2p")));
  const ns3::NetDeviceContainer cards = helper.Install(nodes.Get(cable.ends[0]), nodes.Get(cable.ends[1]));
  ns3::TrafficControlHelper waiting;
  waiting.SetRootQueueDisc("ns3::PfifoFastQueueDisc", "MaxSize", ns3::StringValue("1000000p"));
  waiting.Install(cards);
  Attached attached{};
  for (uint32_t end = 0; end < 2; ++end) {
    const ns3::Ptr<ns3::NetDevice> card = cards.Get(end);
    card->SetMtu(65000);
    const auto bits_per_second = static_cast<uint64_t>(cable.bytes_per_second[end] * 8);
    card->SetAttribute("DataRate", ns3::DataRateValue(ns3::DataRate(bits_per_second)));
    const ns3::Ptr<ns3::Ipv4> ipv4 = ipv4_of(nodes.Get(cable.ends[end]));
    attached.interfaces[end] = ipv4->AddInterface(card);
    const ns3::Ipv4Address address(first_cable_address + 4 * number + 1 + end);
    ipv4->AddAddress(attached.interfaces[end], ns3::Ipv4InterfaceAddress(address, ns3::Ipv4Mask("255.255.255.252")));
    ipv4->SetUp(attached.interfaces[end]);
  }
  return attached;
}

// The mask makes a network of the two addresses of a flow: a socket takes the local address nearest to the remote one.
void add_address(ns3::Ptr<ns3::Ipv4> ipv4, uint32_t interface, ns3::Ipv4Address address) {
  ipv4->AddAddress(interface, ns3::Ipv4InterfaceAddress(address, ns3::Ipv4Mask("255.255.255.254")));
}

// Every flow has a pair of addresses of its own, so that routes by address are routes by flow.
void lay_route(const PacketFlow& flow, ns3::Ipv4Address from, ns3::Ipv4Address to, const std::vector<Cable>& cables,
               const std::vector<Attached>& attached, const ns3::NodeContainer& nodes) {
  ns3::Ipv4StaticRoutingHelper routing;
  for (const CableUse& use : flow.path) {
    const Cable& cable = cables[use.cable];
    const uint32_t* interfaces = attached[use.cable].interfaces;
    const int32_t to_end = 1 - use.from_end;
    routing.GetStaticRouting(ipv4_of(nodes.Get(cable.ends[use.from_end])))
        ->AddHostRouteTo(to, interfaces[use.from_end]);
    routing.GetStaticRouting(ipv4_of(nodes.Get(cable.ends[to_end])))->AddHostRouteTo(from, interfaces[to_end]);
  }
  const CableUse& first = flow.path.front();
  const CableUse& last = flow.path.back();
  add_address(ipv4_of(nodes.Get(cables[first.cable].ends[first.from_end])),
              attached[first.cable].interfaces[first.from_end], from);
  add_address(ipv4_of(nodes.Get(cables[last.cable].ends[1 - last.from_end])),
              attached[last.cable].interfaces[1 - last.from_end], to);
}

void set_defaults(const PacketSettings& settings) {
  using ns3::Config::SetDefault;
  const auto window = static_cast<uint32_t>(settings.window_bytes);
  const auto payload = static_cast<uint32_t>(settings.payload_bytes);
  SetDefault("ns3::TcpSocket::SegmentSize", ns3::UintegerValue(payload));
  SetDefault("ns3::TcpSocket::InitialCwnd", ns3::UintegerValue(std::max(1U, window / payload)));
  SetDefault("ns3::TcpSocket::SndBufSize", ns3::UintegerValue(window));
  SetDefault("ns3::TcpSocket::RcvBufSize", ns3::UintegerValue(window));
  SetDefault("ns3::TcpSocketBase::Timestamp", ns3::BooleanValue(false));
}

}  // namespace

std::vector<double> packet_level_ends(int32_t node_count, const std::vector<Cable>& cables,
                                      const std::vector<PacketFlow>& flows, const PacketSettings& settings) {
  ns3::Time::SetResolution(ns3::Time::PS);  // a packet takes less than 100 ns on a fast link
  set_defaults(settings);
  ns3::NodeContainer nodes;
  nodes.Create(static_cast<uint32_t>(node_count));
  ns3::InternetStackHelper internet;
  internet.SetRoutingHelper(ns3::Ipv4StaticRoutingHelper());
  internet.SetIpv6StackInstall(false);
  internet.Install(nodes);
  std::vector<Attached> attached;
  for (const Cable& cable : cables) attached.push_back(attach(cable, static_cast<uint32_t>(attached.size()), nodes));

  std::vector<std::unique_ptr<Connection>> connections;
  for (const PacketFlow& flow : flows) {
    const auto number = static_cast<uint32_t>(connections.size());
    const ns3::Ipv4Address from(first_flow_address + 2 * number), to(first_flow_address + 2 * number + 1);
    lay_route(flow, from, to, cables, attached, nodes);
    const CableUse& first = flow.path.front();
    const CableUse& last = flow.path.back();
    const auto socket_on = [&](int32_t node, ns3::Ipv4Address address) {
      ns3::Ptr<ns3::Socket> socket =
          ns3::Socket::CreateSocket(nodes.Get(static_cast<uint32_t>(node)), ns3::TcpSocketFactory::GetTypeId());
      socket->Bind(ns3::InetSocketAddress(address, port));
      return socket;
    };
    const ns3::Ptr<ns3::Socket> listener = socket_on(cables[last.cable].ends[1 - last.from_end], to);
    listener->Listen();
    const ns3::Ptr<ns3::Socket> sender = socket_on(cables[first.cable].ends[first.from_end], from);
    connections.push_back(std::make_unique<Connection>(sender, listener, flow.bytes));
    ns3::Simulator::Schedule(ns3::Seconds(0), &Connection::open, connections.back().get(),
                             ns3::InetSocketAddress(to, port));
    ns3::Simulator::Schedule(seconds(warm_up_seconds + flow.start_seconds), &Connection::start,
                             connections.back().get());
  }
  ns3::Simulator::Run();
  std::vector<double> ends;
  for (const std::unique_ptr<Connection>& connection : connections) ends.push_back(connection->end_seconds());
  ns3::Simulator::Destroy();
  return ends;
}

}  // namespace foretoken
