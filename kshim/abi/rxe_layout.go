package abi

// MMInfo is struct mminfo: where in the device file a queue can be mapped (once) and how long it is.
type MMInfo struct {
	Offset uint64
	Size   uint32
	Pad    uint32
}

// MMInfoSize is the size of mminfo in bytes.
const MMInfoSize = 16

// Put encodes v into the first MMInfoSize bytes of b, zeroing what is reserved; b must be at least that long.
func (v *MMInfo) Put(b []byte) {
	clear(b[:MMInfoSize])
	le.PutUint64(b[0:], v.Offset)
	le.PutUint32(b[8:], v.Size)
	le.PutUint32(b[12:], v.Pad)
}

// Parse decodes the first MMInfoSize bytes of b; a shorter b is ErrShort and leaves v alone.
func (v *MMInfo) Parse(b []byte) error {
	if len(b) < MMInfoSize {
		return ErrShort
	}
	v.Offset = le.Uint64(b[0:])
	v.Size = le.Uint32(b[8:])
	v.Pad = le.Uint32(b[12:])
	return nil
}

// RXECreateCQResp is struct rxe_create_cq_resp, the driver's part after CreateCQResp.
type RXECreateCQResp struct {
	MI MMInfo
}

// RXECreateCQRespSize is the size of rxe_create_cq_resp in bytes.
const RXECreateCQRespSize = 16

// Put encodes v into the first RXECreateCQRespSize bytes of b, zeroing what is reserved; b must be at least that long.
func (v *RXECreateCQResp) Put(b []byte) {
	clear(b[:RXECreateCQRespSize])
	v.MI.Put(b[0:16])
}

// Parse decodes the first RXECreateCQRespSize bytes of b; a shorter b is ErrShort and leaves v alone.
func (v *RXECreateCQResp) Parse(b []byte) error {
	if len(b) < RXECreateCQRespSize {
		return ErrShort
	}
	_ = v.MI.Parse(b[0:16])
	return nil
}

// RXEResizeCQResp is struct rxe_resize_cq_resp, the driver's part after ResizeCQResp: the new queue.
type RXEResizeCQResp struct {
	MI MMInfo
}

// RXEResizeCQRespSize is the size of rxe_resize_cq_resp in bytes.
const RXEResizeCQRespSize = 16

// Put encodes v into the first RXEResizeCQRespSize bytes of b, zeroing what is reserved; b must be at least that long.
func (v *RXEResizeCQResp) Put(b []byte) {
	clear(b[:RXEResizeCQRespSize])
	v.MI.Put(b[0:16])
}

// Parse decodes the first RXEResizeCQRespSize bytes of b; a shorter b is ErrShort and leaves v alone.
func (v *RXEResizeCQResp) Parse(b []byte) error {
	if len(b) < RXEResizeCQRespSize {
		return ErrShort
	}
	_ = v.MI.Parse(b[0:16])
	return nil
}

// RXECreateQPResp is struct rxe_create_qp_resp, the driver's part after CreateQPResp: the receive queue comes first.
type RXECreateQPResp struct {
	RQMI MMInfo
	SQMI MMInfo
}

// RXECreateQPRespSize is the size of rxe_create_qp_resp in bytes.
const RXECreateQPRespSize = 32

// Put encodes v into the first RXECreateQPRespSize bytes of b, zeroing what is reserved; b must be at least that long.
func (v *RXECreateQPResp) Put(b []byte) {
	clear(b[:RXECreateQPRespSize])
	v.RQMI.Put(b[0:16])
	v.SQMI.Put(b[16:32])
}

// Parse decodes the first RXECreateQPRespSize bytes of b; a shorter b is ErrShort and leaves v alone.
func (v *RXECreateQPResp) Parse(b []byte) error {
	if len(b) < RXECreateQPRespSize {
		return ErrShort
	}
	_ = v.RQMI.Parse(b[0:16])
	_ = v.SQMI.Parse(b[16:32])
	return nil
}

// RXECreateAHResp is struct rxe_create_ah_resp, the driver's part after CreateAHResp.
type RXECreateAHResp struct {
	AHNum    uint32
	Reserved uint32
}

// RXECreateAHRespSize is the size of rxe_create_ah_resp in bytes.
const RXECreateAHRespSize = 8

// Put encodes v into the first RXECreateAHRespSize bytes of b, zeroing what is reserved; b must be at least that long.
func (v *RXECreateAHResp) Put(b []byte) {
	clear(b[:RXECreateAHRespSize])
	le.PutUint32(b[0:], v.AHNum)
	le.PutUint32(b[4:], v.Reserved)
}

// Parse decodes the first RXECreateAHRespSize bytes of b; a shorter b is ErrShort and leaves v alone.
func (v *RXECreateAHResp) Parse(b []byte) error {
	if len(b) < RXECreateAHRespSize {
		return ErrShort
	}
	v.AHNum = le.Uint32(b[0:])
	v.Reserved = le.Uint32(b[4:])
	return nil
}

// RXESGE is struct rxe_sge, an element of a scatter/gather list.
type RXESGE struct {
	Addr   uint64
	Length uint32
	LKey   uint32
}

// RXESGESize is the size of rxe_sge in bytes.
const RXESGESize = 16

// Put encodes v into the first RXESGESize bytes of b, zeroing what is reserved; b must be at least that long.
func (v *RXESGE) Put(b []byte) {
	clear(b[:RXESGESize])
	le.PutUint64(b[0:], v.Addr)
	le.PutUint32(b[8:], v.Length)
	le.PutUint32(b[12:], v.LKey)
}

// Parse decodes the first RXESGESize bytes of b; a shorter b is ErrShort and leaves v alone.
func (v *RXESGE) Parse(b []byte) error {
	if len(b) < RXESGESize {
		return ErrShort
	}
	v.Addr = le.Uint64(b[0:])
	v.Length = le.Uint32(b[8:])
	v.LKey = le.Uint32(b[12:])
	return nil
}
