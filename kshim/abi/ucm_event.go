package abi

// UCMGetEvent is struct rdma_ucm_get_event.
type UCMGetEvent struct {
	Response uint64
}

// UCMGetEventSize is the size of rdma_ucm_get_event in bytes.
const UCMGetEventSize = 8

// Put encodes v into the first UCMGetEventSize bytes of b, zeroing what is reserved; b must be at least that long.
func (v *UCMGetEvent) Put(b []byte) {
	clear(b[:UCMGetEventSize])
	le.PutUint64(b[0:], v.Response)
}

// Parse decodes the first UCMGetEventSize bytes of b; a shorter b is ErrShort and leaves v alone.
func (v *UCMGetEvent) Parse(b []byte) error {
	if len(b) < UCMGetEventSize {
		return ErrShort
	}
	v.Response = le.Uint64(b[0:])
	return nil
}

// UCMEventResp is struct rdma_ucm_event_resp, the answer to GET_EVENT. Conn and UD decode Param.
type UCMEventResp struct {
	UID    uint64 // of the id; of the listener in CONNECT_REQUEST
	ID     uint32 // of the id; the new one in CONNECT_REQUEST
	Event  UCMEvent
	Status int32                   // a negative errno, or in REJECTED the CMRejReason
	Param  [UCMEventParamSize]byte // a union that the kind of id chooses
	ECE    UCMECE
}

// UCMEventRespSize is the size of rdma_ucm_event_resp in bytes.
const UCMEventRespSize = 336

// Put encodes v into the first UCMEventRespSize bytes of b, zeroing what is reserved; b must be at least that long.
func (v *UCMEventResp) Put(b []byte) {
	clear(b[:UCMEventRespSize])
	le.PutUint64(b[0:], v.UID)
	le.PutUint32(b[8:], v.ID)
	le.PutUint32(b[12:], uint32(v.Event))
	le.PutUint32(b[16:], uint32(v.Status))
	copy(b[20:324], v.Param[:])
	v.ECE.Put(b[328:336])
}

// Parse decodes the first UCMEventRespSize bytes of b; a shorter b is ErrShort and leaves v alone.
func (v *UCMEventResp) Parse(b []byte) error {
	if len(b) < UCMEventRespSize {
		return ErrShort
	}
	v.UID = le.Uint64(b[0:])
	v.ID = le.Uint32(b[8:])
	v.Event = UCMEvent(le.Uint32(b[12:]))
	v.Status = int32(le.Uint32(b[16:]))
	copy(v.Param[:], b[20:324])
	_ = v.ECE.Parse(b[328:336])
	return nil
}

// UCMEventParamSize is the size of the union of UCMConnParam and UCMUDParam.
const UCMEventParamSize = 304

// Conn is the parameter of an event of a connected id.
func (v *UCMEventResp) Conn() (p UCMConnParam) {
	_ = p.Parse(v.Param[:])
	return p
}

// UD is the parameter of an event of a datagram id.
func (v *UCMEventResp) UD() (p UCMUDParam) {
	_ = p.Parse(v.Param[:])
	return p
}
