package abi

// ABI versions of the rxe provider that this package describes: /sys/class/infiniband_verbs/uverbsN/abi_version.
const (
	RXEABIVersionMin = 1
	RXEABIVersionMax = 2
)

// UverbsABIVersion is the version of the uverbs interface itself: /sys/class/infiniband_verbs/abi_version.
const UverbsABIVersion = 6

// A queue of rxe in shared memory starts with struct rxe_queue_buf. The offsets of its fields:
const (
	QueueBufLog2ElemSize  = 0   // u32
	QueueBufIndexMask     = 4   // u32: number of slots - 1
	QueueBufProducerIndex = 128 // u32, written by the producer
	QueueBufConsumerIndex = 256 // u32, written by the consumer
	QueueBufData          = 384 // slot i is at QueueBufData + i<<log2_elem_size
)

// Offsets in struct rxe_send_wqe, an element of a send queue. wr.wr is a union; the offsets of its members overlap.
const (
	SendWQEWRID           = 0   // wr.wr_id u64
	SendWQEOpcode         = 12  // wr.opcode u32
	SendWQESendFlags      = 16  // wr.send_flags u32
	SendWQEImmData        = 20  // wr.ex.imm_data, big-endian u32
	SendWQEInvalidateRKey = 20  // wr.ex.invalidate_rkey u32
	SendWQERDMARemoteAddr = 24  // wr.wr.rdma.remote_addr u64
	SendWQERDMARKey       = 32  // wr.wr.rdma.rkey u32
	SendWQEAtomRemoteAddr = 24  // wr.wr.atomic.remote_addr u64
	SendWQEAtomCompareAdd = 32  // wr.wr.atomic.compare_add u64
	SendWQEAtomSwap       = 40  // wr.wr.atomic.swap u64
	SendWQEAtomRKey       = 48  // wr.wr.atomic.rkey u32: not where rdma has it
	SendWQEUDRemoteQPN    = 24  // wr.wr.ud.remote_qpn u32
	SendWQEUDRemoteQKey   = 28  // wr.wr.ud.remote_qkey u32
	SendWQEUDPkeyIndex    = 32  // wr.wr.ud.pkey_index u16
	SendWQEUDAHNum        = 36  // wr.wr.ud.ah_num u32
	SendWQEStatus         = 144 // u32
	SendWQEState          = 148 // u32: 0 in a slot just posted
	SendWQEIOVA           = 152 // u64: repeats remote_addr; the one the kernel uses
	SendWQEMask           = 160 // u32, the kernel's own, as all up to dma
	SendWQEFirstPSN       = 164 // u32
	SendWQELastPSN        = 168 // u32
	SendWQEAckLength      = 172 // u32
	SendWQESSN            = 176 // u32
	SendWQEHasRdAtomic    = 180 // u32
	SendWQEDMA            = 184 // struct rxe_dma_info
	SendWQESize           = 208 // scatter list or inline data follow
)

// Offsets in struct rxe_recv_wqe, an element of a receive queue.
const (
	RecvWQEWRID = 0  // wr_id u64
	RecvWQEDMA  = 16 // struct rxe_dma_info
	RecvWQESize = 40 // scatter list follows
)

// Offsets in struct rxe_dma_info.
const (
	DMALength    = 0  // u32: sum of the scatter list, or bytes of inline data
	DMAResid     = 4  // u32: as DMALength in a slot just posted
	DMACurSGE    = 8  // u32
	DMANumSGE    = 12 // u32
	DMASGEOffset = 16 // u32
	DMASize      = 24 // scatter list or inline data follow
)
