package netlinkmgr

import "strconv"

// name returns table[i], or the word that iproute2 has for others.
func name(table []string, i int, other string) string {
	if i < len(table) && table[i] != "" {
		return table[i]
	}
	return other
}

// NodeType is RDMA_NODE_* of rdma_netlink.h.
type NodeType uint8

var nodeTypes = []string{"unknown", "ca", "switch", "router", "rnic", "usnic", "usnic_udp", "unspecified"}

func (t NodeType) String() string { return name(nodeTypes, int(t), "unknown") }

// PortState is ib_port_state (IBA 14.2.5.6 PortInfo:PortState).
type PortState uint8

// PortActive is the state in which a port carries packets.
const PortActive PortState = 4

var portStates = []string{"NOP", "DOWN", "INIT", "ARMED", "ACTIVE", "ACTIVE_DEFER"}

func (s PortState) String() string { return name(portStates, int(s), "UNKNOWN") }

// PhysState is ib_port_phys_state (PortInfo:PortPhysicalState and OPA's own).
type PhysState uint8

var physStates = []string{"NOP", "SLEEP", "POLLING", "DISABLED", "ARMED", "LINK_UP", "LINK_ERROR_RECOVER", "PHY_TEST", "UNKNOWN", "OPA_OFFLINE", "UNKNOWN", "OPA_TEST"}

func (s PhysState) String() string { return name(physStates, int(s), "UNKNOWN") }

// QPType is ib_qp_type.
type QPType uint8

var qpTypes = []string{"SMI", "GSI", "RC", "UC", "UD", "RAW_IPV6", "RAW_ETHERTYPE", "UNKNOWN", "RAW_PACKET", "XRC_INI", "XRC_TGT"}

// driverQP is IB_QPT_DRIVER, a driver's own type.
const driverQP QPType = 0xff

func (t QPType) String() string {
	if t == driverQP {
		return "DRIVER"
	}
	return name(qpTypes, int(t), "UNKNOWN")
}

// QPState is ib_qp_state.
type QPState uint8

var qpStates = []string{"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"}

func (s QPState) String() string { return name(qpStates, int(s), "UNKNOWN") }

// SRQType is ib_srq_type.
type SRQType uint8

var srqTypes = []string{"BASIC", "XRC", "TM"}

func (t SRQType) String() string { return name(srqTypes, int(t), "UNKNOWN") }

// PathMigState is ib_mig_state.
type PathMigState uint8

var pathMigStates = []string{"MIGRATED", "REARM", "ARMED"}

func (s PathMigState) String() string { return name(pathMigStates, int(s), "UNKNOWN") }

// PollContext is ib_poll_context: where a kernel queue is polled.
type PollContext uint8

var pollContexts = []string{"DIRECT", "SOFTIRQ", "WORKQUEUE", "UNBOUND_WORKQUEUE"}

func (c PollContext) String() string { return name(pollContexts, int(c), "UNKNOWN") }

// CMState is rdma_cm_state.
type CMState uint8

var cmStates = []string{"IDLE", "ADDR_QUERY", "ADDR_RESOLVED", "ROUTE_QUERY", "ROUTE_RESOLVED", "CONNECT", "DISCONNECT", "ADDR_BOUND", "LISTEN", "DEVICE_REMOVAL", "DESTROYING"}

func (s CMState) String() string { return name(cmStates, int(s), "UNKNOWN") }

// PortSpace is rdma_ucm_port_space.
type PortSpace uint32

func (p PortSpace) String() string {
	switch p {
	case 0x0002, 0x013f: // IPOIB, IB: iproute2 calls both so
		return "IPoIB"
	case 0x0106:
		return "TCP"
	case 0x0111:
		return "UDP"
	}
	return "---"
}

// NetNSMode is whether network namespaces share the RDMA devices.
type NetNSMode uint8

// The modes; the RDMA core begins with NetNSShared.
const (
	NetNSExclusive NetNSMode = 0 // each device is in one namespace
	NetNSShared    NetNSMode = 1 // all are seen in all
)

var netNSModes = []string{"exclusive", "shared"}

func (m NetNSMode) String() string { return name(netNSModes, int(m), "unknown") }

// bitNames lists the names of the set bits, from the lowest.
func bitNames(mask uint64, table []string) []string {
	names := []string{}
	for i := 0; mask != 0; i, mask = i+1, mask>>1 {
		if mask&1 != 0 {
			names = append(names, name(table, i, "UNKNOWN"))
		}
	}
	return names
}

// DeviceCaps names the bits of a device's capabilities in iproute2's words.
func DeviceCaps(mask uint64) []string { return bitNames(mask, deviceCaps) }

// PortCaps names the bits of a port's capabilities in iproute2's words.
func PortCaps(mask uint64) []string { return bitNames(mask, portCaps) }

// deviceCaps is ib_device_cap_flags and, from bit 32, its extension. Scripts
// match the odd spellings.
var deviceCaps = []string{
	"RESIZE_MAX_WR", "BAD_PKEY_CNTR", "BAD_QKEY_CNTR", "RAW_MULTI", "AUTO_PATH_MIG", "CHANGE_PHY_PORT",
	"UD_AV_PORT_ENFORCE_PORT_ENFORCE", "CURR_QP_STATE_MOD", "SHUTDOWN_PORT", "INIT_TYPE", "PORT_ACTIVE_EVENT", "SYS_IMAGE_GUID",
	"RC_RNR_NAK_GEN", "SRQ_RESIZE", "N_NOTIFY_CQ", "LOCAL_DMA_LKEY", "", "MEM_WINDOW", "UD_IP_CSUM", "UD_TSO", "XRC",
	"MEM_MGT_EXTENSIONS", "BLOCK_MULTICAST_LOOPBACK", "MEM_WINDOW_TYPE_2A", "MEM_WINDOW_TYPE_2B", "RC_IP_CSUM", "RAW_IP_CSUM",
	"CROSS_CHANNEL", "", "MANAGED_FLOW_STEERING", "SIGNATURE_HANDOVER", "ON_DEMAND_PAGING",
	"SG_GAPS_REG", "VIRTUAL_FUNCTION", "RAW_SCATTER_FCS", "RDMA_NETDEV_OPA_VNIC", "PCI_WRITE_END_PADDING",
}

// portCaps is PortInfo:CapabilityMask and, from bit 32, CapabilityMask2.
var portCaps = []string{
	"RESERVED", "SM", "NOTICE", "TRAP", "OPT_IPD", "AUTO_MIGR", "SL_MAP", "MKEY_NVRAM", "PKEY_NVRAM", "LED_INFO", "SM_DISABLED",
	"SYS_IMAGE_GUID", "PKEY_SW_EXT_PORT_TRAP", "CABLE_INFO", "EXTENDED_SPEEDS", "CAP_MASK2", "CM", "SNMP_TUNNEL", "REINIT",
	"DEVICE_MGMT", "VENDOR_CLASS", "DR_NOTICE", "CAP_MASK_NOTICE", "BOOT_MGMT", "LINK_LATENCY", "CLIENT_REG", "OTHER_LOCAL_CHANGES",
	"LINK_SPPED_WIDTH", "VENDOR_SPECIFIC_MADS", "MULT_PKER_TRAP", "MULT_FDB", "HIERARCHY_INFO",
	"SET_NODE_DESC", "EXT_INFO", "VIRT", "SWITCH_POR_STATE_TABLE", "LINK_WIDTH_2X", "LINK_SPEED_HDR",
}

// String names a port as iproute2 does: rxe0/1.
func (p *Port) String() string { return p.Device + "/" + strconv.Itoa(int(p.Port)) }
