// Broadcast over a mesh in ns-3, for the comparison in compare: 802.11b at 2 Mbit/s, two-ray ground, Rayleigh
// fading for each frame and receiver, frames of 1500 bytes. Thresholds are those of a 250 m radio that senses up
// to 460 m; whatever is sensed may be received.
//
// Arguments: --positions=FILE (lines x,y) --seconds=S --rate=R (packets/s of each node, Poisson; 0: saturated)
// --run=N. Prints one line of JSON.
#include "ns3/core-module.h"
#include "ns3/mobility-module.h"
#include "ns3/network-module.h"
#include "ns3/propagation-module.h"
#include "ns3/wifi-module.h"

#include <fstream>
#include <iostream>
#include <vector>

using namespace ns3;

namespace
{

constexpr uint32_t PAYLOAD = 1500;
constexpr uint32_t CONTROL = 200; // Shorter packets on the air are not ours.

struct Mesh
{
    std::vector<Ptr<NetDevice>> devices;
    Ptr<ExponentialRandomVariable> gaps = CreateObject<ExponentialRandomVariable>();
    double rate = 0;
    uint64_t sent = 0;
    uint64_t received = 0;

    void Offer(uint32_t node)
    {
        devices[node]->Send(Create<Packet>(PAYLOAD), devices[node]->GetBroadcast(), 0x0800);
    }

    void Arrive(uint32_t node)
    {
        Offer(node);
        Simulator::Schedule(Seconds(gaps->GetValue(1 / rate, 0)), &Mesh::Arrive, this, node);
    }

    void Begun(uint32_t node, Ptr<const Packet> packet, double)
    {
        if (packet->GetSize() < CONTROL)
            return;
        sent++;
        if (rate == 0)
            Simulator::Schedule(MicroSeconds(1), &Mesh::Offer, this, node);
    }

    bool Heard(Ptr<NetDevice>, Ptr<const Packet>, uint16_t, const Address&)
    {
        received++;
        return true;
    }
};

Ptr<ListPositionAllocator> ReadPositions(const std::string& file, uint32_t& count)
{
    auto positions = CreateObject<ListPositionAllocator>();
    std::ifstream lines(file);
    double x, y;
    char comma;
    for (count = 0; lines >> x >> comma >> y; count++)
        positions->Add(Vector(x, y, 0));
    return positions;
}

NetDeviceContainer Install(NodeContainer nodes)
{
    auto loss = CreateObject<TwoRayGroundPropagationLossModel>();
    loss->SetAttribute("Frequency", DoubleValue(2.4e9));
    loss->SetAttribute("HeightAboveZ", DoubleValue(1.5));
    auto fading = CreateObject<NakagamiPropagationLossModel>();
    for (auto shape : {"m0", "m1", "m2"})
        fading->SetAttribute(shape, DoubleValue(1));
    loss->SetNext(fading);
    auto channel = CreateObject<YansWifiChannel>();
    channel->SetPropagationLossModel(loss);
    channel->SetPropagationDelayModel(CreateObject<ConstantSpeedPropagationDelayModel>());
    YansWifiPhyHelper phy;
    phy.SetChannel(channel);
    phy.Set("TxPowerStart", DoubleValue(24.4995));
    phy.Set("TxPowerEnd", DoubleValue(24.4995));
    phy.Set("CcaEdThreshold", DoubleValue(-74.97));
    phy.Set("RxSensitivity", DoubleValue(-75.384)); // ns-3 adds 0.414 dB for 22 MHz.
    WifiHelper wifi;
    wifi.SetStandard(WIFI_STANDARD_80211b);
    const StringValue rate("DsssRate2Mbps");
    wifi.SetRemoteStationManager("ns3::ConstantRateWifiManager", "DataMode", rate, "ControlMode", rate,
                                 "NonUnicastMode", rate);
    WifiMacHelper mac;
    mac.SetType("ns3::AdhocWifiMac", "QosSupported", BooleanValue(false));
    return wifi.Install(phy, mac, nodes);
}

} // namespace

int main(int argc, char** argv)
{
    std::string file;
    double seconds = 10;
    uint32_t run = 1;
    Mesh mesh;
    CommandLine arguments;
    arguments.AddValue("positions", "lines of x,y in m", file);
    arguments.AddValue("seconds", "simulated time", seconds);
    arguments.AddValue("rate", "packets/s of each node, 0: saturated", mesh.rate);
    arguments.AddValue("run", "names the random draws", run);
    arguments.Parse(argc, argv);
    RngSeedManager::SetRun(run);
    Config::SetDefault("ns3::WifiMacQueue::MaxDelay", TimeValue(Seconds(1e5)));
    Config::SetDefault("ns3::ThresholdPreambleDetectionModel::MinimumRssi", DoubleValue(-74.97));

    uint32_t count;
    MobilityHelper mobility;
    mobility.SetPositionAllocator(ReadPositions(file, count));
    NodeContainer nodes(count);
    mobility.Install(nodes);
    auto devices = Install(nodes);
    for (uint32_t i = 0; i < count; i++)
    {
        auto device = DynamicCast<WifiNetDevice>(devices.Get(i));
        mesh.devices.push_back(device);
        device->SetReceiveCallback(MakeCallback(&Mesh::Heard, &mesh));
        device->GetPhy()->TraceConnectWithoutContext("PhyTxBegin", MakeCallback(&Mesh::Begun, &mesh, i));
        auto first = mesh.rate == 0 ? MilliSeconds(10.0 * i / count)
                                    : Seconds(mesh.gaps->GetValue(1 / mesh.rate, 0));
        for (int frame = 0; mesh.rate == 0 && frame < 3; frame++)
            Simulator::Schedule(first, &Mesh::Offer, &mesh, i);
        if (mesh.rate > 0)
            Simulator::Schedule(first, &Mesh::Arrive, &mesh, i);
    }
    Simulator::Stop(Seconds(seconds));
    Simulator::Run();
    std::cout << "{\"tx_per_s\": " << mesh.sent / seconds
              << ", \"received_per_tx\": " << double(mesh.received) / mesh.sent << "}\n";
    Simulator::Destroy();
}
