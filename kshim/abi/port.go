package abi

// MTU is a path MTU as the kernel numbers them: enum ib_mtu.
type MTU uint8

const (
	MTU256  MTU = 1
	MTU512  MTU = 2
	MTU1024 MTU = 3
	MTU2048 MTU = 4
	MTU4096 MTU = 5
)

var mtuNames = map[MTU]string{
	MTU256:  "256",
	MTU512:  "512",
	MTU1024: "1024",
	MTU2048: "2048",
	MTU4096: "4096",
}

// String gives the kernel's name without its prefix, or MTU(n).
func (v MTU) String() string { return enumString(mtuNames, v, "MTU") }

// Bytes is the payload of one packet at this MTU, or 0 if v is none of the five.
func (v MTU) Bytes() int {
	if v < MTU256 || v > MTU4096 {
		return 0
	}
	return 128 << v
}

// PortState is the logical state of a port: enum ib_port_state.
type PortState uint8

const (
	PortNop         PortState = 0
	PortDown        PortState = 1
	PortInit        PortState = 2
	PortArmed       PortState = 3
	PortActive      PortState = 4
	PortActiveDefer PortState = 5
)

var portStateNames = map[PortState]string{
	PortNop:         "NOP",
	PortDown:        "DOWN",
	PortInit:        "INIT",
	PortArmed:       "ARMED",
	PortActive:      "ACTIVE",
	PortActiveDefer: "ACTIVE_DEFER",
}

// String gives the kernel's name without its prefix, or PortState(n).
func (v PortState) String() string { return enumString(portStateNames, v, "PortState") }

// PhysState is the physical state of a port: enum ib_port_phys_state.
type PhysState uint8

const (
	PortPhysStateSleep                     PhysState = 1
	PortPhysStatePolling                   PhysState = 2
	PortPhysStateDisabled                  PhysState = 3
	PortPhysStatePortConfigurationTraining PhysState = 4
	PortPhysStateLinkUp                    PhysState = 5
	PortPhysStateLinkErrorRecovery         PhysState = 6
	PortPhysStatePhyTest                   PhysState = 7
)

var physStateNames = map[PhysState]string{
	PortPhysStateSleep:                     "SLEEP",
	PortPhysStatePolling:                   "POLLING",
	PortPhysStateDisabled:                  "DISABLED",
	PortPhysStatePortConfigurationTraining: "PORT_CONFIGURATION_TRAINING",
	PortPhysStateLinkUp:                    "LINK_UP",
	PortPhysStateLinkErrorRecovery:         "LINK_ERROR_RECOVERY",
	PortPhysStatePhyTest:                   "PHY_TEST",
}

// String gives the kernel's name without its prefix, or PhysState(n).
func (v PhysState) String() string { return enumString(physStateNames, v, "PhysState") }

// LinkLayer is the link layer of a port: enum rdma_link_layer.
type LinkLayer uint8

const (
	LinkLayerUnspecified LinkLayer = 0
	LinkLayerInfiniBand  LinkLayer = 1
	LinkLayerEthernet    LinkLayer = 2
)

var linkLayerNames = map[LinkLayer]string{
	LinkLayerUnspecified: "UNSPECIFIED",
	LinkLayerInfiniBand:  "INFINIBAND",
	LinkLayerEthernet:    "ETHERNET",
}

// String gives the kernel's name without its prefix, or LinkLayer(n).
func (v LinkLayer) String() string { return enumString(linkLayerNames, v, "LinkLayer") }

// GIDType is the kind of a GID table entry: enum ib_uverbs_gid_type.
type GIDType uint32

const (
	GIDTypeIB     GIDType = 0
	GIDTypeRoCEv1 GIDType = 1
	GIDTypeRoCEv2 GIDType = 2
)

var gidTypeNames = map[GIDType]string{
	GIDTypeIB:     "IB",
	GIDTypeRoCEv1: "ROCE_V1",
	GIDTypeRoCEv2: "ROCE_V2",
}

// String gives the kernel's name without its prefix, or GIDType(n).
func (v GIDType) String() string { return enumString(gidTypeNames, v, "GIDType") }

// AtomicCap is how far atomic operations are atomic: enum ib_atomic_cap.
type AtomicCap uint32

const (
	AtomicNone AtomicCap = 0
	AtomicHCA  AtomicCap = 1
	AtomicGlob AtomicCap = 2
)

var atomicCapNames = map[AtomicCap]string{
	AtomicNone: "NONE",
	AtomicHCA:  "HCA",
	AtomicGlob: "GLOB",
}

// String gives the kernel's name without its prefix, or AtomicCap(n).
func (v AtomicCap) String() string { return enumString(atomicCapNames, v, "AtomicCap") }

// NodeType is the kind of a device: enum rdma_node_type.
type NodeType uint32

const (
	NodeIBCA        NodeType = 1
	NodeIBSwitch    NodeType = 2
	NodeIBRouter    NodeType = 3
	NodeRNIC        NodeType = 4
	NodeUSNIC       NodeType = 5
	NodeUSNICUDP    NodeType = 6
	NodeUnspecified NodeType = 7
)

var nodeTypeNames = map[NodeType]string{
	NodeIBCA:        "IB_CA",
	NodeIBSwitch:    "IB_SWITCH",
	NodeIBRouter:    "IB_ROUTER",
	NodeRNIC:        "RNIC",
	NodeUSNIC:       "USNIC",
	NodeUSNICUDP:    "USNIC_UDP",
	NodeUnspecified: "UNSPECIFIED",
}

// String gives the kernel's name without its prefix, or NodeType(n).
func (v NodeType) String() string { return enumString(nodeTypeNames, v, "NodeType") }

// DriverID is the number of a kernel driver: enum rdma_driver_id.
type DriverID uint32

const (
	DriverUnknown   DriverID = 0
	DriverMLX5      DriverID = 1
	DriverMLX4      DriverID = 2
	DriverCXGB3     DriverID = 3
	DriverCXGB4     DriverID = 4
	DriverMTHCA     DriverID = 5
	DriverBNXTRE    DriverID = 6
	DriverOCRDMA    DriverID = 7
	DriverNES       DriverID = 8
	DriverIRDMA     DriverID = 9
	DriverVMWPVRDMA DriverID = 10
	DriverQEDR      DriverID = 11
	DriverHNS       DriverID = 12
	DriverUSNIC     DriverID = 13
	DriverRXE       DriverID = 14
	DriverHFI1      DriverID = 15
	DriverQIB       DriverID = 16
	DriverEFA       DriverID = 17
	DriverSIW       DriverID = 18
	DriverERDMA     DriverID = 19
)

var driverIDNames = map[DriverID]string{
	DriverUnknown:   "UNKNOWN",
	DriverMLX5:      "MLX5",
	DriverMLX4:      "MLX4",
	DriverCXGB3:     "CXGB3",
	DriverCXGB4:     "CXGB4",
	DriverMTHCA:     "MTHCA",
	DriverBNXTRE:    "BNXT_RE",
	DriverOCRDMA:    "OCRDMA",
	DriverNES:       "NES",
	DriverIRDMA:     "IRDMA",
	DriverVMWPVRDMA: "VMW_PVRDMA",
	DriverQEDR:      "QEDR",
	DriverHNS:       "HNS",
	DriverUSNIC:     "USNIC",
	DriverRXE:       "RXE",
	DriverHFI1:      "HFI1",
	DriverQIB:       "QIB",
	DriverEFA:       "EFA",
	DriverSIW:       "SIW",
	DriverERDMA:     "ERDMA",
}

// String gives the kernel's name without its prefix, or DriverID(n).
func (v DriverID) String() string { return enumString(driverIDNames, v, "DriverID") }
