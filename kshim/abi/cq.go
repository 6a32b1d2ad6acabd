package abi

// CreateCompChannel is struct ib_uverbs_create_comp_channel.
type CreateCompChannel struct {
	Response uint64
}

// CreateCompChannelSize is the size of ib_uverbs_create_comp_channel in bytes.
const CreateCompChannelSize = 8

// Put encodes v into the first CreateCompChannelSize bytes of b, zeroing what is reserved; b must be at least that long.
func (v *CreateCompChannel) Put(b []byte) {
	clear(b[:CreateCompChannelSize])
	le.PutUint64(b[0:], v.Response)
}

// Parse decodes the first CreateCompChannelSize bytes of b; a shorter b is ErrShort and leaves v alone.
func (v *CreateCompChannel) Parse(b []byte) error {
	if len(b) < CreateCompChannelSize {
		return ErrShort
	}
	v.Response = le.Uint64(b[0:])
	return nil
}

// CreateCompChannelResp is struct ib_uverbs_create_comp_channel_resp.
type CreateCompChannelResp struct {
	FD uint32
}

// CreateCompChannelRespSize is the size of ib_uverbs_create_comp_channel_resp in bytes.
const CreateCompChannelRespSize = 4

// Put encodes v into the first CreateCompChannelRespSize bytes of b, zeroing what is reserved; b must be at least that long.
func (v *CreateCompChannelResp) Put(b []byte) {
	clear(b[:CreateCompChannelRespSize])
	le.PutUint32(b[0:], v.FD)
}

// Parse decodes the first CreateCompChannelRespSize bytes of b; a shorter b is ErrShort and leaves v alone.
func (v *CreateCompChannelResp) Parse(b []byte) error {
	if len(b) < CreateCompChannelRespSize {
		return ErrShort
	}
	v.FD = le.Uint32(b[0:])
	return nil
}

// CreateCQ is struct ib_uverbs_create_cq.
type CreateCQ struct {
	Response    uint64
	UserHandle  uint64 // comes back in events
	CQE         uint32
	CompVector  uint32
	CompChannel int32 // a file descriptor; -1 for none (0 is a descriptor)
	Reserved    uint32
}

// CreateCQSize is the size of ib_uverbs_create_cq in bytes.
const CreateCQSize = 32

// Put encodes v into the first CreateCQSize bytes of b, zeroing what is reserved; b must be at least that long.
func (v *CreateCQ) Put(b []byte) {
	clear(b[:CreateCQSize])
	le.PutUint64(b[0:], v.Response)
	le.PutUint64(b[8:], v.UserHandle)
	le.PutUint32(b[16:], v.CQE)
	le.PutUint32(b[20:], v.CompVector)
	le.PutUint32(b[24:], uint32(v.CompChannel))
	le.PutUint32(b[28:], v.Reserved)
}

// Parse decodes the first CreateCQSize bytes of b; a shorter b is ErrShort and leaves v alone.
func (v *CreateCQ) Parse(b []byte) error {
	if len(b) < CreateCQSize {
		return ErrShort
	}
	v.Response = le.Uint64(b[0:])
	v.UserHandle = le.Uint64(b[8:])
	v.CQE = le.Uint32(b[16:])
	v.CompVector = le.Uint32(b[20:])
	v.CompChannel = int32(le.Uint32(b[24:]))
	v.Reserved = le.Uint32(b[28:])
	return nil
}

// CreateCQResp is struct ib_uverbs_create_cq_resp; the driver's part follows it.
type CreateCQResp struct {
	CQHandle uint32
	CQE      uint32
}

// CreateCQRespSize is the size of ib_uverbs_create_cq_resp in bytes.
const CreateCQRespSize = 8

// Put encodes v into the first CreateCQRespSize bytes of b, zeroing what is reserved; b must be at least that long.
func (v *CreateCQResp) Put(b []byte) {
	clear(b[:CreateCQRespSize])
	le.PutUint32(b[0:], v.CQHandle)
	le.PutUint32(b[4:], v.CQE)
}

// Parse decodes the first CreateCQRespSize bytes of b; a shorter b is ErrShort and leaves v alone.
func (v *CreateCQResp) Parse(b []byte) error {
	if len(b) < CreateCQRespSize {
		return ErrShort
	}
	v.CQHandle = le.Uint32(b[0:])
	v.CQE = le.Uint32(b[4:])
	return nil
}

// ResizeCQ is struct ib_uverbs_resize_cq.
type ResizeCQ struct {
	Response uint64
	CQHandle uint32
	CQE      uint32
}

// ResizeCQSize is the size of ib_uverbs_resize_cq in bytes.
const ResizeCQSize = 16

// Put encodes v into the first ResizeCQSize bytes of b, zeroing what is reserved; b must be at least that long.
func (v *ResizeCQ) Put(b []byte) {
	clear(b[:ResizeCQSize])
	le.PutUint64(b[0:], v.Response)
	le.PutUint32(b[8:], v.CQHandle)
	le.PutUint32(b[12:], v.CQE)
}

// Parse decodes the first ResizeCQSize bytes of b; a shorter b is ErrShort and leaves v alone.
func (v *ResizeCQ) Parse(b []byte) error {
	if len(b) < ResizeCQSize {
		return ErrShort
	}
	v.Response = le.Uint64(b[0:])
	v.CQHandle = le.Uint32(b[8:])
	v.CQE = le.Uint32(b[12:])
	return nil
}

// ResizeCQResp is struct ib_uverbs_resize_cq_resp.
type ResizeCQResp struct {
	CQE      uint32
	Reserved uint32
}

// ResizeCQRespSize is the size of ib_uverbs_resize_cq_resp in bytes.
const ResizeCQRespSize = 8

// Put encodes v into the first ResizeCQRespSize bytes of b, zeroing what is reserved; b must be at least that long.
func (v *ResizeCQResp) Put(b []byte) {
	clear(b[:ResizeCQRespSize])
	le.PutUint32(b[0:], v.CQE)
	le.PutUint32(b[4:], v.Reserved)
}

// Parse decodes the first ResizeCQRespSize bytes of b; a shorter b is ErrShort and leaves v alone.
func (v *ResizeCQResp) Parse(b []byte) error {
	if len(b) < ResizeCQRespSize {
		return ErrShort
	}
	v.CQE = le.Uint32(b[0:])
	v.Reserved = le.Uint32(b[4:])
	return nil
}

// DestroyCQ is struct ib_uverbs_destroy_cq.
type DestroyCQ struct {
	Response uint64
	CQHandle uint32
	Reserved uint32
}

// DestroyCQSize is the size of ib_uverbs_destroy_cq in bytes.
const DestroyCQSize = 16

// Put encodes v into the first DestroyCQSize bytes of b, zeroing what is reserved; b must be at least that long.
func (v *DestroyCQ) Put(b []byte) {
	clear(b[:DestroyCQSize])
	le.PutUint64(b[0:], v.Response)
	le.PutUint32(b[8:], v.CQHandle)
	le.PutUint32(b[12:], v.Reserved)
}

// Parse decodes the first DestroyCQSize bytes of b; a shorter b is ErrShort and leaves v alone.
func (v *DestroyCQ) Parse(b []byte) error {
	if len(b) < DestroyCQSize {
		return ErrShort
	}
	v.Response = le.Uint64(b[0:])
	v.CQHandle = le.Uint32(b[8:])
	v.Reserved = le.Uint32(b[12:])
	return nil
}

// DestroyCQResp is struct ib_uverbs_destroy_cq_resp.
type DestroyCQResp struct {
	CompEventsReported  uint32
	AsyncEventsReported uint32
}

// DestroyCQRespSize is the size of ib_uverbs_destroy_cq_resp in bytes.
const DestroyCQRespSize = 8

// Put encodes v into the first DestroyCQRespSize bytes of b, zeroing what is reserved; b must be at least that long.
func (v *DestroyCQResp) Put(b []byte) {
	clear(b[:DestroyCQRespSize])
	le.PutUint32(b[0:], v.CompEventsReported)
	le.PutUint32(b[4:], v.AsyncEventsReported)
}

// Parse decodes the first DestroyCQRespSize bytes of b; a shorter b is ErrShort and leaves v alone.
func (v *DestroyCQResp) Parse(b []byte) error {
	if len(b) < DestroyCQRespSize {
		return ErrShort
	}
	v.CompEventsReported = le.Uint32(b[0:])
	v.AsyncEventsReported = le.Uint32(b[4:])
	return nil
}

// ReqNotifyCQ is struct ib_uverbs_req_notify_cq.
type ReqNotifyCQ struct {
	CQHandle      uint32
	SolicitedOnly uint32
}

// ReqNotifyCQSize is the size of ib_uverbs_req_notify_cq in bytes.
const ReqNotifyCQSize = 8

// Put encodes v into the first ReqNotifyCQSize bytes of b, zeroing what is reserved; b must be at least that long.
func (v *ReqNotifyCQ) Put(b []byte) {
	clear(b[:ReqNotifyCQSize])
	le.PutUint32(b[0:], v.CQHandle)
	le.PutUint32(b[4:], v.SolicitedOnly)
}

// Parse decodes the first ReqNotifyCQSize bytes of b; a shorter b is ErrShort and leaves v alone.
func (v *ReqNotifyCQ) Parse(b []byte) error {
	if len(b) < ReqNotifyCQSize {
		return ErrShort
	}
	v.CQHandle = le.Uint32(b[0:])
	v.SolicitedOnly = le.Uint32(b[4:])
	return nil
}

// WC is struct ib_uverbs_wc, a work completion. On an error status
// Linux fills only WRID, Status, QPNum and VendorErr.
type WC struct {
	WRID         uint64
	Status       WCStatus
	Opcode       WCOpcode
	VendorErr    uint32
	ByteLen      uint32
	Ex           [4]byte // imm_data (big-endian) or invalidate_rkey, as WCFlags says
	QPNum        uint32
	SrcQP        uint32
	WCFlags      WCFlags
	PkeyIndex    uint16
	SLID         uint16
	SL           uint8
	DLIDPathBits uint8
	PortNum      uint8
}

// WCSize is the size of ib_uverbs_wc in bytes.
const WCSize = 48

// Put encodes v into the first WCSize bytes of b, zeroing what is reserved; b must be at least that long.
func (v *WC) Put(b []byte) {
	clear(b[:WCSize])
	le.PutUint64(b[0:], v.WRID)
	le.PutUint32(b[8:], uint32(v.Status))
	le.PutUint32(b[12:], uint32(v.Opcode))
	le.PutUint32(b[16:], v.VendorErr)
	le.PutUint32(b[20:], v.ByteLen)
	copy(b[24:28], v.Ex[:])
	le.PutUint32(b[28:], v.QPNum)
	le.PutUint32(b[32:], v.SrcQP)
	le.PutUint32(b[36:], uint32(v.WCFlags))
	le.PutUint16(b[40:], v.PkeyIndex)
	le.PutUint16(b[42:], v.SLID)
	b[44] = v.SL
	b[45] = v.DLIDPathBits
	b[46] = v.PortNum
}

// Parse decodes the first WCSize bytes of b; a shorter b is ErrShort and leaves v alone.
func (v *WC) Parse(b []byte) error {
	if len(b) < WCSize {
		return ErrShort
	}
	v.WRID = le.Uint64(b[0:])
	v.Status = WCStatus(le.Uint32(b[8:]))
	v.Opcode = WCOpcode(le.Uint32(b[12:]))
	v.VendorErr = le.Uint32(b[16:])
	v.ByteLen = le.Uint32(b[20:])
	copy(v.Ex[:], b[24:28])
	v.QPNum = le.Uint32(b[28:])
	v.SrcQP = le.Uint32(b[32:])
	v.WCFlags = WCFlags(le.Uint32(b[36:]))
	v.PkeyIndex = le.Uint16(b[40:])
	v.SLID = le.Uint16(b[42:])
	v.SL = b[44]
	v.DLIDPathBits = b[45]
	v.PortNum = b[46]
	return nil
}

// CompEvent is struct ib_uverbs_comp_event_desc, one read() of a completion channel.
type CompEvent struct {
	CQHandle uint64 // the UserHandle given to CREATE_CQ
}

// CompEventSize is the size of ib_uverbs_comp_event_desc in bytes.
const CompEventSize = 8

// Put encodes v into the first CompEventSize bytes of b, zeroing what is reserved; b must be at least that long.
func (v *CompEvent) Put(b []byte) {
	clear(b[:CompEventSize])
	le.PutUint64(b[0:], v.CQHandle)
}

// Parse decodes the first CompEventSize bytes of b; a shorter b is ErrShort and leaves v alone.
func (v *CompEvent) Parse(b []byte) error {
	if len(b) < CompEventSize {
		return ErrShort
	}
	v.CQHandle = le.Uint64(b[0:])
	return nil
}

// AsyncEvent is struct ib_uverbs_async_event_desc, one read() of the asynchronous event file.
type AsyncEvent struct {
	Element   uint64 // the object's UserHandle; the port's number in port events
	EventType EventType
	Reserved  uint32
}

// AsyncEventSize is the size of ib_uverbs_async_event_desc in bytes.
const AsyncEventSize = 16

// Put encodes v into the first AsyncEventSize bytes of b, zeroing what is reserved; b must be at least that long.
func (v *AsyncEvent) Put(b []byte) {
	clear(b[:AsyncEventSize])
	le.PutUint64(b[0:], v.Element)
	le.PutUint32(b[8:], uint32(v.EventType))
	le.PutUint32(b[12:], v.Reserved)
}

// Parse decodes the first AsyncEventSize bytes of b; a shorter b is ErrShort and leaves v alone.
func (v *AsyncEvent) Parse(b []byte) error {
	if len(b) < AsyncEventSize {
		return ErrShort
	}
	v.Element = le.Uint64(b[0:])
	v.EventType = EventType(le.Uint32(b[8:]))
	v.Reserved = le.Uint32(b[12:])
	return nil
}
