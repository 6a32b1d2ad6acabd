package abi

// UCMABIVersion is RDMA_USER_CM_ABI_VERSION, as /sys/class/misc/rdma_cm/abi_version says it.
const UCMABIVersion = 4

// Room for private data. What a message carries depends on its kind: the kernel takes UCMMaxPrivateData at most and gives a
// received message's room whole, zeroes behind what the peer sent (IBA 12.6; the IP addresses take 36 bytes of a REQ's 92).
const (
	UCMMaxPrivateData = 256 // RDMA_MAX_PRIVATE_DATA

	UCMConnectData = 56  // in CONNECT, as CONNECT_REQUEST gives it
	UCMAcceptData  = 196 // in ACCEPT, as CONNECT_RESPONSE gives it
	UCMRejectData  = 148 // in REJECT, as REJECTED gives it
)

// UCMCommand is the number of a command of /dev/infiniband/rdma_cm: RDMA_USER_CM_CMD_*.
type UCMCommand uint32

const (
	UCMCmdCreateID     UCMCommand = 0
	UCMCmdDestroyID    UCMCommand = 1
	UCMCmdBindIP       UCMCommand = 2
	UCMCmdResolveIP    UCMCommand = 3
	UCMCmdResolveRoute UCMCommand = 4
	UCMCmdQueryRoute   UCMCommand = 5
	UCMCmdConnect      UCMCommand = 6
	UCMCmdListen       UCMCommand = 7
	UCMCmdAccept       UCMCommand = 8
	UCMCmdReject       UCMCommand = 9
	UCMCmdDisconnect   UCMCommand = 10
	UCMCmdInitQPAttr   UCMCommand = 11
	UCMCmdGetEvent     UCMCommand = 12
	UCMCmdGetOption    UCMCommand = 13
	UCMCmdSetOption    UCMCommand = 14
	UCMCmdNotify       UCMCommand = 15
	UCMCmdJoinIPMcast  UCMCommand = 16
	UCMCmdLeaveMcast   UCMCommand = 17
	UCMCmdMigrateID    UCMCommand = 18
	UCMCmdQuery        UCMCommand = 19
	UCMCmdBind         UCMCommand = 20
	UCMCmdResolveAddr  UCMCommand = 21
	UCMCmdJoinMcast    UCMCommand = 22
)

var ucmCommandNames = map[UCMCommand]string{
	UCMCmdCreateID:     "CREATE_ID",
	UCMCmdDestroyID:    "DESTROY_ID",
	UCMCmdBindIP:       "BIND_IP",
	UCMCmdResolveIP:    "RESOLVE_IP",
	UCMCmdResolveRoute: "RESOLVE_ROUTE",
	UCMCmdQueryRoute:   "QUERY_ROUTE",
	UCMCmdConnect:      "CONNECT",
	UCMCmdListen:       "LISTEN",
	UCMCmdAccept:       "ACCEPT",
	UCMCmdReject:       "REJECT",
	UCMCmdDisconnect:   "DISCONNECT",
	UCMCmdInitQPAttr:   "INIT_QP_ATTR",
	UCMCmdGetEvent:     "GET_EVENT",
	UCMCmdGetOption:    "GET_OPTION",
	UCMCmdSetOption:    "SET_OPTION",
	UCMCmdNotify:       "NOTIFY",
	UCMCmdJoinIPMcast:  "JOIN_IP_MCAST",
	UCMCmdLeaveMcast:   "LEAVE_MCAST",
	UCMCmdMigrateID:    "MIGRATE_ID",
	UCMCmdQuery:        "QUERY",
	UCMCmdBind:         "BIND",
	UCMCmdResolveAddr:  "RESOLVE_ADDR",
	UCMCmdJoinMcast:    "JOIN_MCAST",
}

// String gives the kernel's name without its prefix, or UCMCommand(n).
func (v UCMCommand) String() string { return enumString(ucmCommandNames, v, "UCMCommand") }

// UCMPortSpace is where the ports of an id belong: enum rdma_ucm_port_space (IBA annex A11).
type UCMPortSpace uint16

const (
	UCMPSIPoIB UCMPortSpace = 0x0002
	UCMPSTCP   UCMPortSpace = 0x0106
	UCMPSUDP   UCMPortSpace = 0x0111
	UCMPSIB    UCMPortSpace = 0x013f
)

var ucmPortSpaceNames = map[UCMPortSpace]string{UCMPSIPoIB: "IPOIB", UCMPSTCP: "TCP", UCMPSUDP: "UDP", UCMPSIB: "IB"}

// String gives the kernel's name without its prefix, or UCMPortSpace(n).
func (v UCMPortSpace) String() string { return enumString(ucmPortSpaceNames, v, "UCMPortSpace") }

// UCMQueryOption is what QUERY asks for: RDMA_USER_CM_QUERY_*.
type UCMQueryOption uint32

const (
	UCMQueryAddr UCMQueryOption = 0 // UCMQueryAddrResp with IP addresses
	UCMQueryPath UCMQueryOption = 1 // UCMQueryPathResp
	UCMQueryGID  UCMQueryOption = 2 // UCMQueryAddrResp with struct sockaddr_ib
)

// UCMOptionLevel and UCMOption name an option of SET_OPTION: RDMA_OPTION_*.
type (
	UCMOptionLevel uint32
	UCMOption      uint32
)

const (
	UCMLevelID UCMOptionLevel = 0 // RDMA_OPTION_ID
	UCMLevelIB UCMOptionLevel = 1 // RDMA_OPTION_IB

	UCMOptionTOS        UCMOption = 0 // uint8
	UCMOptionReuseAddr  UCMOption = 1 // int, 0 or 1
	UCMOptionAFOnly     UCMOption = 2 // int, 0 or 1
	UCMOptionAckTimeout UCMOption = 3 // uint8: 4.096 µs × 2^n
	UCMOptionIBPath     UCMOption = 1 // of UCMLevelIB: path records
)
