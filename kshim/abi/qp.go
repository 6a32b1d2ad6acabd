package abi

// CreateQP is struct ib_uverbs_create_qp.
type CreateQP struct {
	Response      uint64
	UserHandle    uint64
	PDHandle      uint32
	SendCQHandle  uint32
	RecvCQHandle  uint32
	SRQHandle     uint32
	MaxSendWR     uint32
	MaxRecvWR     uint32
	MaxSendSGE    uint32
	MaxRecvSGE    uint32
	MaxInlineData uint32
	SQSigAll      uint8
	QPType        QPType
	IsSRQ         uint8
}

// CreateQPSize is the size of ib_uverbs_create_qp in bytes.
const CreateQPSize = 56

// Put encodes v into the first CreateQPSize bytes of b, zeroing what is reserved; b must be at least that long.
func (v *CreateQP) Put(b []byte) {
	clear(b[:CreateQPSize])
	le.PutUint64(b[0:], v.Response)
	le.PutUint64(b[8:], v.UserHandle)
	le.PutUint32(b[16:], v.PDHandle)
	le.PutUint32(b[20:], v.SendCQHandle)
	le.PutUint32(b[24:], v.RecvCQHandle)
	le.PutUint32(b[28:], v.SRQHandle)
	le.PutUint32(b[32:], v.MaxSendWR)
	le.PutUint32(b[36:], v.MaxRecvWR)
	le.PutUint32(b[40:], v.MaxSendSGE)
	le.PutUint32(b[44:], v.MaxRecvSGE)
	le.PutUint32(b[48:], v.MaxInlineData)
	b[52] = v.SQSigAll
	b[53] = uint8(v.QPType)
	b[54] = v.IsSRQ
}

// Parse decodes the first CreateQPSize bytes of b; a shorter b is ErrShort and leaves v alone.
func (v *CreateQP) Parse(b []byte) error {
	if len(b) < CreateQPSize {
		return ErrShort
	}
	v.Response = le.Uint64(b[0:])
	v.UserHandle = le.Uint64(b[8:])
	v.PDHandle = le.Uint32(b[16:])
	v.SendCQHandle = le.Uint32(b[20:])
	v.RecvCQHandle = le.Uint32(b[24:])
	v.SRQHandle = le.Uint32(b[28:])
	v.MaxSendWR = le.Uint32(b[32:])
	v.MaxRecvWR = le.Uint32(b[36:])
	v.MaxSendSGE = le.Uint32(b[40:])
	v.MaxRecvSGE = le.Uint32(b[44:])
	v.MaxInlineData = le.Uint32(b[48:])
	v.SQSigAll = b[52]
	v.QPType = QPType(b[53])
	v.IsSRQ = b[54]
	return nil
}

// CreateQPResp is struct ib_uverbs_create_qp_resp; the driver's part follows it.
type CreateQPResp struct {
	QPHandle      uint32
	QPN           uint32
	MaxSendWR     uint32
	MaxRecvWR     uint32
	MaxSendSGE    uint32
	MaxRecvSGE    uint32
	MaxInlineData uint32
	Reserved      uint32
}

// CreateQPRespSize is the size of ib_uverbs_create_qp_resp in bytes.
const CreateQPRespSize = 32

// Put encodes v into the first CreateQPRespSize bytes of b, zeroing what is reserved; b must be at least that long.
func (v *CreateQPResp) Put(b []byte) {
	clear(b[:CreateQPRespSize])
	le.PutUint32(b[0:], v.QPHandle)
	le.PutUint32(b[4:], v.QPN)
	le.PutUint32(b[8:], v.MaxSendWR)
	le.PutUint32(b[12:], v.MaxRecvWR)
	le.PutUint32(b[16:], v.MaxSendSGE)
	le.PutUint32(b[20:], v.MaxRecvSGE)
	le.PutUint32(b[24:], v.MaxInlineData)
	le.PutUint32(b[28:], v.Reserved)
}

// Parse decodes the first CreateQPRespSize bytes of b; a shorter b is ErrShort and leaves v alone.
func (v *CreateQPResp) Parse(b []byte) error {
	if len(b) < CreateQPRespSize {
		return ErrShort
	}
	v.QPHandle = le.Uint32(b[0:])
	v.QPN = le.Uint32(b[4:])
	v.MaxSendWR = le.Uint32(b[8:])
	v.MaxRecvWR = le.Uint32(b[12:])
	v.MaxSendSGE = le.Uint32(b[16:])
	v.MaxRecvSGE = le.Uint32(b[20:])
	v.MaxInlineData = le.Uint32(b[24:])
	v.Reserved = le.Uint32(b[28:])
	return nil
}

// DestroyQP is struct ib_uverbs_destroy_qp.
type DestroyQP struct {
	Response uint64
	QPHandle uint32
	Reserved uint32
}

// DestroyQPSize is the size of ib_uverbs_destroy_qp in bytes.
const DestroyQPSize = 16

// Put encodes v into the first DestroyQPSize bytes of b, zeroing what is reserved; b must be at least that long.
func (v *DestroyQP) Put(b []byte) {
	clear(b[:DestroyQPSize])
	le.PutUint64(b[0:], v.Response)
	le.PutUint32(b[8:], v.QPHandle)
	le.PutUint32(b[12:], v.Reserved)
}

// Parse decodes the first DestroyQPSize bytes of b; a shorter b is ErrShort and leaves v alone.
func (v *DestroyQP) Parse(b []byte) error {
	if len(b) < DestroyQPSize {
		return ErrShort
	}
	v.Response = le.Uint64(b[0:])
	v.QPHandle = le.Uint32(b[8:])
	v.Reserved = le.Uint32(b[12:])
	return nil
}

// DestroyQPResp is struct ib_uverbs_destroy_qp_resp.
type DestroyQPResp struct {
	EventsReported uint32
}

// DestroyQPRespSize is the size of ib_uverbs_destroy_qp_resp in bytes.
const DestroyQPRespSize = 4

// Put encodes v into the first DestroyQPRespSize bytes of b, zeroing what is reserved; b must be at least that long.
func (v *DestroyQPResp) Put(b []byte) {
	clear(b[:DestroyQPRespSize])
	le.PutUint32(b[0:], v.EventsReported)
}

// Parse decodes the first DestroyQPRespSize bytes of b; a shorter b is ErrShort and leaves v alone.
func (v *DestroyQPResp) Parse(b []byte) error {
	if len(b) < DestroyQPRespSize {
		return ErrShort
	}
	v.EventsReported = le.Uint32(b[0:])
	return nil
}
