package abi

// The extended commands. They carry no address of their response, which the second header has, and no least sizes: what a
// shorter request leaves out is zero.

// ExCreateCQ is struct ib_uverbs_ex_create_cq.
type ExCreateCQ struct {
	UserHandle  uint64
	CQE         uint32
	CompVector  uint32
	CompChannel int32
	CompMask    uint32
	Flags       uint32
	Reserved    uint32
}

// ExCreateCQSize is the size of ib_uverbs_ex_create_cq in bytes.
const ExCreateCQSize = 32

// Put encodes v into the first ExCreateCQSize bytes of b, zeroing what is reserved; b must be at least that long.
func (v *ExCreateCQ) Put(b []byte) {
	clear(b[:ExCreateCQSize])
	le.PutUint64(b[0:], v.UserHandle)
	le.PutUint32(b[8:], v.CQE)
	le.PutUint32(b[12:], v.CompVector)
	le.PutUint32(b[16:], uint32(v.CompChannel))
	le.PutUint32(b[20:], v.CompMask)
	le.PutUint32(b[24:], v.Flags)
	le.PutUint32(b[28:], v.Reserved)
}

// Parse decodes the first ExCreateCQSize bytes of b; a shorter b is ErrShort and leaves v alone.
func (v *ExCreateCQ) Parse(b []byte) error {
	if len(b) < ExCreateCQSize {
		return ErrShort
	}
	v.UserHandle = le.Uint64(b[0:])
	v.CQE = le.Uint32(b[8:])
	v.CompVector = le.Uint32(b[12:])
	v.CompChannel = int32(le.Uint32(b[16:]))
	v.CompMask = le.Uint32(b[20:])
	v.Flags = le.Uint32(b[24:])
	v.Reserved = le.Uint32(b[28:])
	return nil
}

// ExCreateCQResp is struct ib_uverbs_ex_create_cq_resp; the driver's part is apart.
type ExCreateCQResp struct {
	Base           CreateCQResp
	CompMask       uint32
	ResponseLength uint32
}

// ExCreateCQRespSize is the size of ib_uverbs_ex_create_cq_resp in bytes.
const ExCreateCQRespSize = 16

// Put encodes v into the first ExCreateCQRespSize bytes of b, zeroing what is reserved; b must be at least that long.
func (v *ExCreateCQResp) Put(b []byte) {
	clear(b[:ExCreateCQRespSize])
	v.Base.Put(b[0:8])
	le.PutUint32(b[8:], v.CompMask)
	le.PutUint32(b[12:], v.ResponseLength)
}

// Parse decodes the first ExCreateCQRespSize bytes of b; a shorter b is ErrShort and leaves v alone.
func (v *ExCreateCQResp) Parse(b []byte) error {
	if len(b) < ExCreateCQRespSize {
		return ErrShort
	}
	_ = v.Base.Parse(b[0:8])
	v.CompMask = le.Uint32(b[8:])
	v.ResponseLength = le.Uint32(b[12:])
	return nil
}

// ExCreateQP is struct ib_uverbs_ex_create_qp.
type ExCreateQP struct {
	UserHandle      uint64
	PDHandle        uint32
	SendCQHandle    uint32
	RecvCQHandle    uint32
	SRQHandle       uint32
	MaxSendWR       uint32
	MaxRecvWR       uint32
	MaxSendSGE      uint32
	MaxRecvSGE      uint32
	MaxInlineData   uint32
	SQSigAll        uint8
	QPType          QPType
	IsSRQ           uint8
	Reserved        uint8
	CompMask        uint32
	CreateFlags     uint32
	RWQIndTblHandle uint32
	SourceQPN       uint32
}

// ExCreateQPSize is the size of ib_uverbs_ex_create_qp in bytes.
const ExCreateQPSize = 64

// Put encodes v into the first ExCreateQPSize bytes of b, zeroing what is reserved; b must be at least that long.
func (v *ExCreateQP) Put(b []byte) {
	clear(b[:ExCreateQPSize])
	le.PutUint64(b[0:], v.UserHandle)
	le.PutUint32(b[8:], v.PDHandle)
	le.PutUint32(b[12:], v.SendCQHandle)
	le.PutUint32(b[16:], v.RecvCQHandle)
	le.PutUint32(b[20:], v.SRQHandle)
	le.PutUint32(b[24:], v.MaxSendWR)
	le.PutUint32(b[28:], v.MaxRecvWR)
	le.PutUint32(b[32:], v.MaxSendSGE)
	le.PutUint32(b[36:], v.MaxRecvSGE)
	le.PutUint32(b[40:], v.MaxInlineData)
	b[44] = v.SQSigAll
	b[45] = uint8(v.QPType)
	b[46] = v.IsSRQ
	b[47] = v.Reserved
	le.PutUint32(b[48:], v.CompMask)
	le.PutUint32(b[52:], v.CreateFlags)
	le.PutUint32(b[56:], v.RWQIndTblHandle)
	le.PutUint32(b[60:], v.SourceQPN)
}

// Parse decodes the first ExCreateQPSize bytes of b; a shorter b is ErrShort and leaves v alone.
func (v *ExCreateQP) Parse(b []byte) error {
	if len(b) < ExCreateQPSize {
		return ErrShort
	}
	v.UserHandle = le.Uint64(b[0:])
	v.PDHandle = le.Uint32(b[8:])
	v.SendCQHandle = le.Uint32(b[12:])
	v.RecvCQHandle = le.Uint32(b[16:])
	v.SRQHandle = le.Uint32(b[20:])
	v.MaxSendWR = le.Uint32(b[24:])
	v.MaxRecvWR = le.Uint32(b[28:])
	v.MaxSendSGE = le.Uint32(b[32:])
	v.MaxRecvSGE = le.Uint32(b[36:])
	v.MaxInlineData = le.Uint32(b[40:])
	v.SQSigAll = b[44]
	v.QPType = QPType(b[45])
	v.IsSRQ = b[46]
	v.Reserved = b[47]
	v.CompMask = le.Uint32(b[48:])
	v.CreateFlags = le.Uint32(b[52:])
	v.RWQIndTblHandle = le.Uint32(b[56:])
	v.SourceQPN = le.Uint32(b[60:])
	return nil
}

// ExCreateQPResp is struct ib_uverbs_ex_create_qp_resp; the driver's part is apart.
type ExCreateQPResp struct {
	Base           CreateQPResp
	CompMask       uint32
	ResponseLength uint32
}

// ExCreateQPRespSize is the size of ib_uverbs_ex_create_qp_resp in bytes.
const ExCreateQPRespSize = 40

// Put encodes v into the first ExCreateQPRespSize bytes of b, zeroing what is reserved; b must be at least that long.
func (v *ExCreateQPResp) Put(b []byte) {
	clear(b[:ExCreateQPRespSize])
	v.Base.Put(b[0:32])
	le.PutUint32(b[32:], v.CompMask)
	le.PutUint32(b[36:], v.ResponseLength)
}

// Parse decodes the first ExCreateQPRespSize bytes of b; a shorter b is ErrShort and leaves v alone.
func (v *ExCreateQPResp) Parse(b []byte) error {
	if len(b) < ExCreateQPRespSize {
		return ErrShort
	}
	_ = v.Base.Parse(b[0:32])
	v.CompMask = le.Uint32(b[32:])
	v.ResponseLength = le.Uint32(b[36:])
	return nil
}

// ExModifyQP is struct ib_uverbs_ex_modify_qp.
type ExModifyQP struct {
	Base      ModifyQP
	RateLimit uint32
	Reserved  uint32
}

// ExModifyQPSize is the size of ib_uverbs_ex_modify_qp in bytes.
const ExModifyQPSize = 120

// Put encodes v into the first ExModifyQPSize bytes of b, zeroing what is reserved; b must be at least that long.
func (v *ExModifyQP) Put(b []byte) {
	clear(b[:ExModifyQPSize])
	v.Base.Put(b[0:112])
	le.PutUint32(b[112:], v.RateLimit)
	le.PutUint32(b[116:], v.Reserved)
}

// Parse decodes the first ExModifyQPSize bytes of b; a shorter b is ErrShort and leaves v alone.
func (v *ExModifyQP) Parse(b []byte) error {
	if len(b) < ExModifyQPSize {
		return ErrShort
	}
	_ = v.Base.Parse(b[0:112])
	v.RateLimit = le.Uint32(b[112:])
	v.Reserved = le.Uint32(b[116:])
	return nil
}

// ExModifyQPResp is struct ib_uverbs_ex_modify_qp_resp.
type ExModifyQPResp struct {
	CompMask       uint32
	ResponseLength uint32
}

// ExModifyQPRespSize is the size of ib_uverbs_ex_modify_qp_resp in bytes.
const ExModifyQPRespSize = 8

// Put encodes v into the first ExModifyQPRespSize bytes of b, zeroing what is reserved; b must be at least that long.
func (v *ExModifyQPResp) Put(b []byte) {
	clear(b[:ExModifyQPRespSize])
	le.PutUint32(b[0:], v.CompMask)
	le.PutUint32(b[4:], v.ResponseLength)
}

// Parse decodes the first ExModifyQPRespSize bytes of b; a shorter b is ErrShort and leaves v alone.
func (v *ExModifyQPResp) Parse(b []byte) error {
	if len(b) < ExModifyQPRespSize {
		return ErrShort
	}
	v.CompMask = le.Uint32(b[0:])
	v.ResponseLength = le.Uint32(b[4:])
	return nil
}
