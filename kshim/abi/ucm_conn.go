package abi

// UCMConnParam is struct rdma_ucm_conn_param, what both sides tell of the connection.
type UCMConnParam struct {
	QPNum              uint32
	QKey               uint32
	PrivateData        [UCMMaxPrivateData]byte
	PrivateDataLen     uint8
	SRQ                uint8
	ResponderResources uint8 // READs and atomics taken at a time
	InitiatorDepth     uint8 // READs and atomics issued at a time
	FlowControl        uint8
	RetryCount         uint8 // 3 bits
	RNRRetryCount      uint8 // 3 bits, 7 for ever
	Valid              uint8 // in ACCEPT: 0 when only the id counts
}

// UCMConnParamSize is the size of rdma_ucm_conn_param in bytes.
const UCMConnParamSize = 272

// Put encodes v into the first UCMConnParamSize bytes of b, zeroing what is reserved; b must be at least that long.
func (v *UCMConnParam) Put(b []byte) {
	clear(b[:UCMConnParamSize])
	le.PutUint32(b[0:], v.QPNum)
	le.PutUint32(b[4:], v.QKey)
	copy(b[8:264], v.PrivateData[:])
	b[264] = v.PrivateDataLen
	b[265] = v.SRQ
	b[266] = v.ResponderResources
	b[267] = v.InitiatorDepth
	b[268] = v.FlowControl
	b[269] = v.RetryCount
	b[270] = v.RNRRetryCount
	b[271] = v.Valid
}

// Parse decodes the first UCMConnParamSize bytes of b; a shorter b is ErrShort and leaves v alone.
func (v *UCMConnParam) Parse(b []byte) error {
	if len(b) < UCMConnParamSize {
		return ErrShort
	}
	v.QPNum = le.Uint32(b[0:])
	v.QKey = le.Uint32(b[4:])
	copy(v.PrivateData[:], b[8:264])
	v.PrivateDataLen = b[264]
	v.SRQ = b[265]
	v.ResponderResources = b[266]
	v.InitiatorDepth = b[267]
	v.FlowControl = b[268]
	v.RetryCount = b[269]
	v.RNRRetryCount = b[270]
	v.Valid = b[271]
	return nil
}

// UCMUDParam is struct rdma_ucm_ud_param, which an event of a datagram id carries.
type UCMUDParam struct {
	QPNum          uint32
	QKey           uint32
	AHAttr         AHAttr
	PrivateData    [UCMMaxPrivateData]byte
	PrivateDataLen uint8
}

// UCMUDParamSize is the size of rdma_ucm_ud_param in bytes.
const UCMUDParamSize = 304

// Put encodes v into the first UCMUDParamSize bytes of b, zeroing what is reserved; b must be at least that long.
func (v *UCMUDParam) Put(b []byte) {
	clear(b[:UCMUDParamSize])
	le.PutUint32(b[0:], v.QPNum)
	le.PutUint32(b[4:], v.QKey)
	v.AHAttr.Put(b[8:40])
	copy(b[40:296], v.PrivateData[:])
	b[296] = v.PrivateDataLen
}

// Parse decodes the first UCMUDParamSize bytes of b; a shorter b is ErrShort and leaves v alone.
func (v *UCMUDParam) Parse(b []byte) error {
	if len(b) < UCMUDParamSize {
		return ErrShort
	}
	v.QPNum = le.Uint32(b[0:])
	v.QKey = le.Uint32(b[4:])
	_ = v.AHAttr.Parse(b[8:40])
	copy(v.PrivateData[:], b[40:296])
	v.PrivateDataLen = b[296]
	return nil
}

// UCMECE is struct rdma_ucm_ece, enhanced connection establishment.
type UCMECE struct {
	VendorID uint32
	AttrMod  uint32
}

// UCMECESize is the size of rdma_ucm_ece in bytes.
const UCMECESize = 8

// Put encodes v into the first UCMECESize bytes of b, zeroing what is reserved; b must be at least that long.
func (v *UCMECE) Put(b []byte) {
	clear(b[:UCMECESize])
	le.PutUint32(b[0:], v.VendorID)
	le.PutUint32(b[4:], v.AttrMod)
}

// Parse decodes the first UCMECESize bytes of b; a shorter b is ErrShort and leaves v alone.
func (v *UCMECE) Parse(b []byte) error {
	if len(b) < UCMECESize {
		return ErrShort
	}
	v.VendorID = le.Uint32(b[0:])
	v.AttrMod = le.Uint32(b[4:])
	return nil
}

// UCMConnect is struct rdma_ucm_connect.
type UCMConnect struct {
	ConnParam UCMConnParam
	ID        uint32
	ECE       UCMECE
}

// UCMConnectSize is the size of rdma_ucm_connect in bytes.
const UCMConnectSize = 288

// Put encodes v into the first UCMConnectSize bytes of b, zeroing what is reserved; b must be at least that long.
func (v *UCMConnect) Put(b []byte) {
	clear(b[:UCMConnectSize])
	v.ConnParam.Put(b[0:272])
	le.PutUint32(b[272:], v.ID)
	v.ECE.Put(b[280:288])
}

// Parse decodes the first UCMConnectSize bytes of b; a shorter b is ErrShort and leaves v alone.
func (v *UCMConnect) Parse(b []byte) error {
	if len(b) < UCMConnectSize {
		return ErrShort
	}
	_ = v.ConnParam.Parse(b[0:272])
	v.ID = le.Uint32(b[272:])
	_ = v.ECE.Parse(b[280:288])
	return nil
}

// UCMListen is struct rdma_ucm_listen.
type UCMListen struct {
	ID      uint32
	Backlog uint32
}

// UCMListenSize is the size of rdma_ucm_listen in bytes.
const UCMListenSize = 8

// Put encodes v into the first UCMListenSize bytes of b, zeroing what is reserved; b must be at least that long.
func (v *UCMListen) Put(b []byte) {
	clear(b[:UCMListenSize])
	le.PutUint32(b[0:], v.ID)
	le.PutUint32(b[4:], v.Backlog)
}

// Parse decodes the first UCMListenSize bytes of b; a shorter b is ErrShort and leaves v alone.
func (v *UCMListen) Parse(b []byte) error {
	if len(b) < UCMListenSize {
		return ErrShort
	}
	v.ID = le.Uint32(b[0:])
	v.Backlog = le.Uint32(b[4:])
	return nil
}

// UCMAccept is struct rdma_ucm_accept.
type UCMAccept struct {
	UID       uint64 // the id's from now on
	ConnParam UCMConnParam
	ID        uint32
	ECE       UCMECE
}

// UCMAcceptSize is the size of rdma_ucm_accept in bytes.
const UCMAcceptSize = 296

// Put encodes v into the first UCMAcceptSize bytes of b, zeroing what is reserved; b must be at least that long.
func (v *UCMAccept) Put(b []byte) {
	clear(b[:UCMAcceptSize])
	le.PutUint64(b[0:], v.UID)
	v.ConnParam.Put(b[8:280])
	le.PutUint32(b[280:], v.ID)
	v.ECE.Put(b[288:296])
}

// Parse decodes the first UCMAcceptSize bytes of b; a shorter b is ErrShort and leaves v alone.
func (v *UCMAccept) Parse(b []byte) error {
	if len(b) < UCMAcceptSize {
		return ErrShort
	}
	v.UID = le.Uint64(b[0:])
	_ = v.ConnParam.Parse(b[8:280])
	v.ID = le.Uint32(b[280:])
	_ = v.ECE.Parse(b[288:296])
	return nil
}

// UCMReject is struct rdma_ucm_reject.
type UCMReject struct {
	ID             uint32
	PrivateDataLen uint8
	Reason         uint8 // 0 or a CMRejReason that ucma_reject permits
	PrivateData    [UCMMaxPrivateData]byte
}

// UCMRejectSize is the size of rdma_ucm_reject in bytes.
const UCMRejectSize = 264

// Put encodes v into the first UCMRejectSize bytes of b, zeroing what is reserved; b must be at least that long.
func (v *UCMReject) Put(b []byte) {
	clear(b[:UCMRejectSize])
	le.PutUint32(b[0:], v.ID)
	b[4] = v.PrivateDataLen
	b[5] = v.Reason
	copy(b[8:264], v.PrivateData[:])
}

// Parse decodes the first UCMRejectSize bytes of b; a shorter b is ErrShort and leaves v alone.
func (v *UCMReject) Parse(b []byte) error {
	if len(b) < UCMRejectSize {
		return ErrShort
	}
	v.ID = le.Uint32(b[0:])
	v.PrivateDataLen = b[4]
	v.Reason = b[5]
	copy(v.PrivateData[:], b[8:264])
	return nil
}

// UCMDisconnect is struct rdma_ucm_disconnect.
type UCMDisconnect struct {
	ID uint32
}

// UCMDisconnectSize is the size of rdma_ucm_disconnect in bytes.
const UCMDisconnectSize = 4

// Put encodes v into the first UCMDisconnectSize bytes of b, zeroing what is reserved; b must be at least that long.
func (v *UCMDisconnect) Put(b []byte) {
	clear(b[:UCMDisconnectSize])
	le.PutUint32(b[0:], v.ID)
}

// Parse decodes the first UCMDisconnectSize bytes of b; a shorter b is ErrShort and leaves v alone.
func (v *UCMDisconnect) Parse(b []byte) error {
	if len(b) < UCMDisconnectSize {
		return ErrShort
	}
	v.ID = le.Uint32(b[0:])
	return nil
}

// UCMNotify is struct rdma_ucm_notify.
type UCMNotify struct {
	ID    uint32
	Event EventType
}

// UCMNotifySize is the size of rdma_ucm_notify in bytes.
const UCMNotifySize = 8

// Put encodes v into the first UCMNotifySize bytes of b, zeroing what is reserved; b must be at least that long.
func (v *UCMNotify) Put(b []byte) {
	clear(b[:UCMNotifySize])
	le.PutUint32(b[0:], v.ID)
	le.PutUint32(b[4:], uint32(v.Event))
}

// Parse decodes the first UCMNotifySize bytes of b; a shorter b is ErrShort and leaves v alone.
func (v *UCMNotify) Parse(b []byte) error {
	if len(b) < UCMNotifySize {
		return ErrShort
	}
	v.ID = le.Uint32(b[0:])
	v.Event = EventType(le.Uint32(b[4:]))
	return nil
}

// Private is the private data that the parameter carries.
func (v *UCMConnParam) Private() []byte { return v.PrivateData[:v.PrivateDataLen] }
