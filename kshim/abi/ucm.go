package abi

// UCMABIVersion is RDMA_USER_CM_ABI_VERSION, as
// /sys/class/misc/rdma_cm/abi_version says it.
const UCMABIVersion = 4

// Room for private data. The length that a message carries depends on its kind:
// the kernel takes UCMMaxPrivateData at most and gives a received message's
// room whole, zeroes behind the peer's bytes (IBA 12.6; the IP addresses take
// 36 bytes of a REQ's 92).
const (
	UCMMaxPrivateData = 256 // RDMA_MAX_PRIVATE_DATA

	UCMConnectData = 56  // in CONNECT, as CONNECT_REQUEST gives it
	UCMAcceptData  = 196 // in ACCEPT, as CONNECT_RESPONSE gives it
	UCMRejectData  = 148 // in REJECT, as REJECTED gives it

	UCMAskData    = 180 // of datagrams: in CONNECT, as CONNECT_REQUEST gives it
	UCMAnswerData = 136 // of datagrams: in ACCEPT and REJECT, as ESTABLISHED and UNREACHABLE give it
)

// UCMOptionLevel and UCMOption name an option of SET_OPTION: RDMA_OPTION_*.
type (
	UCMOptionLevel uint32
	UCMOption      uint32
)

// Values of UCMOptionLevel and UCMOption.
const (
	UCMLevelID UCMOptionLevel = 0 // RDMA_OPTION_ID
	UCMLevelIB UCMOptionLevel = 1 // RDMA_OPTION_IB

	UCMOptionTOS        UCMOption = 0 // uint8
	UCMOptionReuseAddr  UCMOption = 1 // int, 0 or 1
	UCMOptionAFOnly     UCMOption = 2 // int, 0 or 1
	UCMOptionAckTimeout UCMOption = 3 // uint8: 4.096 µs × 2^n
	UCMOptionIBPath     UCMOption = 1 // of UCMLevelIB: path records
)

// UCMEventParamSize is the size of the union of UCMConnParam and UCMUDParam.
const UCMEventParamSize = 304

// Conn returns the parameter of an event of a connected id.
func (v *UCMEventResp) Conn() (p UCMConnParam) {
	_ = p.Parse(v.Param[:])
	return p
}

// UD returns the parameter of an event of a datagram id.
func (v *UCMEventResp) UD() (p UCMUDParam) {
	_ = p.Parse(v.Param[:])
	return p
}

// Private returns the private data that the parameter carries.
func (v *UCMConnParam) Private() []byte { return v.PrivateData[:v.PrivateDataLen] }

// Private returns the private data that the parameter carries.
func (v *UCMUDParam) Private() []byte { return v.PrivateData[:v.PrivateDataLen] }

// UCMUDPQKey is the Q_Key of datagrams of the port space UDP and of its
// multicast groups (RDMA_UDP_QKEY).
const UCMUDPQKey = 0x01234567
