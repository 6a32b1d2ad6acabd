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

// QPDest is struct ib_uverbs_qp_dest, an address vector as MODIFY_QP and QUERY_QP hold it.
// The order of its fields is not that of AHAttr.
type QPDest struct {
	DGID         [16]byte
	FlowLabel    uint32
	DLID         uint16
	Reserved     uint16
	SGIDIndex    uint8
	HopLimit     uint8
	TrafficClass uint8
	SL           uint8
	SrcPathBits  uint8
	StaticRate   uint8
	IsGlobal     uint8
	PortNum      uint8
}

// QPDestSize is the size of ib_uverbs_qp_dest in bytes.
const QPDestSize = 32

// Put encodes v into the first QPDestSize bytes of b, zeroing what is reserved; b must be at least that long.
func (v *QPDest) Put(b []byte) {
	clear(b[:QPDestSize])
	copy(b[0:16], v.DGID[:])
	le.PutUint32(b[16:], v.FlowLabel)
	le.PutUint16(b[20:], v.DLID)
	le.PutUint16(b[22:], v.Reserved)
	b[24] = v.SGIDIndex
	b[25] = v.HopLimit
	b[26] = v.TrafficClass
	b[27] = v.SL
	b[28] = v.SrcPathBits
	b[29] = v.StaticRate
	b[30] = v.IsGlobal
	b[31] = v.PortNum
}

// Parse decodes the first QPDestSize bytes of b; a shorter b is ErrShort and leaves v alone.
func (v *QPDest) Parse(b []byte) error {
	if len(b) < QPDestSize {
		return ErrShort
	}
	copy(v.DGID[:], b[0:16])
	v.FlowLabel = le.Uint32(b[16:])
	v.DLID = le.Uint16(b[20:])
	v.Reserved = le.Uint16(b[22:])
	v.SGIDIndex = b[24]
	v.HopLimit = b[25]
	v.TrafficClass = b[26]
	v.SL = b[27]
	v.SrcPathBits = b[28]
	v.StaticRate = b[29]
	v.IsGlobal = b[30]
	v.PortNum = b[31]
	return nil
}

// QueryQP is struct ib_uverbs_query_qp.
type QueryQP struct {
	Response uint64
	QPHandle uint32
	AttrMask QPAttrMask
}

// QueryQPSize is the size of ib_uverbs_query_qp in bytes.
const QueryQPSize = 16

// Put encodes v into the first QueryQPSize bytes of b, zeroing what is reserved; b must be at least that long.
func (v *QueryQP) Put(b []byte) {
	clear(b[:QueryQPSize])
	le.PutUint64(b[0:], v.Response)
	le.PutUint32(b[8:], v.QPHandle)
	le.PutUint32(b[12:], uint32(v.AttrMask))
}

// Parse decodes the first QueryQPSize bytes of b; a shorter b is ErrShort and leaves v alone.
func (v *QueryQP) Parse(b []byte) error {
	if len(b) < QueryQPSize {
		return ErrShort
	}
	v.Response = le.Uint64(b[0:])
	v.QPHandle = le.Uint32(b[8:])
	v.AttrMask = QPAttrMask(le.Uint32(b[12:]))
	return nil
}

// QueryQPResp is struct ib_uverbs_query_qp_resp.
type QueryQPResp struct {
	Dest            QPDest
	AltDest         QPDest
	MaxSendWR       uint32
	MaxRecvWR       uint32
	MaxSendSGE      uint32
	MaxRecvSGE      uint32
	MaxInlineData   uint32
	QKey            uint32
	RQPSN           uint32
	SQPSN           uint32
	DestQPNum       uint32
	QPAccessFlags   AccessFlags
	PkeyIndex       uint16
	AltPkeyIndex    uint16
	QPState         QPState
	CurQPState      QPState
	PathMTU         MTU
	PathMigState    MigState
	SQDraining      uint8
	MaxRdAtomic     uint8
	MaxDestRdAtomic uint8
	MinRNRTimer     uint8
	PortNum         uint8
	Timeout         uint8
	RetryCnt        uint8
	RNRRetry        uint8
	AltPortNum      uint8
	AltTimeout      uint8
	SQSigAll        uint8
}

// QueryQPRespSize is the size of ib_uverbs_query_qp_resp in bytes.
const QueryQPRespSize = 128

// Put encodes v into the first QueryQPRespSize bytes of b, zeroing what is reserved; b must be at least that long.
func (v *QueryQPResp) Put(b []byte) {
	clear(b[:QueryQPRespSize])
	v.Dest.Put(b[0:32])
	v.AltDest.Put(b[32:64])
	le.PutUint32(b[64:], v.MaxSendWR)
	le.PutUint32(b[68:], v.MaxRecvWR)
	le.PutUint32(b[72:], v.MaxSendSGE)
	le.PutUint32(b[76:], v.MaxRecvSGE)
	le.PutUint32(b[80:], v.MaxInlineData)
	le.PutUint32(b[84:], v.QKey)
	le.PutUint32(b[88:], v.RQPSN)
	le.PutUint32(b[92:], v.SQPSN)
	le.PutUint32(b[96:], v.DestQPNum)
	le.PutUint32(b[100:], uint32(v.QPAccessFlags))
	le.PutUint16(b[104:], v.PkeyIndex)
	le.PutUint16(b[106:], v.AltPkeyIndex)
	b[108] = uint8(v.QPState)
	b[109] = uint8(v.CurQPState)
	b[110] = uint8(v.PathMTU)
	b[111] = uint8(v.PathMigState)
	b[112] = v.SQDraining
	b[113] = v.MaxRdAtomic
	b[114] = v.MaxDestRdAtomic
	b[115] = v.MinRNRTimer
	b[116] = v.PortNum
	b[117] = v.Timeout
	b[118] = v.RetryCnt
	b[119] = v.RNRRetry
	b[120] = v.AltPortNum
	b[121] = v.AltTimeout
	b[122] = v.SQSigAll
}

// Parse decodes the first QueryQPRespSize bytes of b; a shorter b is ErrShort and leaves v alone.
func (v *QueryQPResp) Parse(b []byte) error {
	if len(b) < QueryQPRespSize {
		return ErrShort
	}
	_ = v.Dest.Parse(b[0:32])
	_ = v.AltDest.Parse(b[32:64])
	v.MaxSendWR = le.Uint32(b[64:])
	v.MaxRecvWR = le.Uint32(b[68:])
	v.MaxSendSGE = le.Uint32(b[72:])
	v.MaxRecvSGE = le.Uint32(b[76:])
	v.MaxInlineData = le.Uint32(b[80:])
	v.QKey = le.Uint32(b[84:])
	v.RQPSN = le.Uint32(b[88:])
	v.SQPSN = le.Uint32(b[92:])
	v.DestQPNum = le.Uint32(b[96:])
	v.QPAccessFlags = AccessFlags(le.Uint32(b[100:]))
	v.PkeyIndex = le.Uint16(b[104:])
	v.AltPkeyIndex = le.Uint16(b[106:])
	v.QPState = QPState(b[108])
	v.CurQPState = QPState(b[109])
	v.PathMTU = MTU(b[110])
	v.PathMigState = MigState(b[111])
	v.SQDraining = b[112]
	v.MaxRdAtomic = b[113]
	v.MaxDestRdAtomic = b[114]
	v.MinRNRTimer = b[115]
	v.PortNum = b[116]
	v.Timeout = b[117]
	v.RetryCnt = b[118]
	v.RNRRetry = b[119]
	v.AltPortNum = b[120]
	v.AltTimeout = b[121]
	v.SQSigAll = b[122]
	return nil
}

// ModifyQP is struct ib_uverbs_modify_qp. Fields that AttrMask does not name are ignored.
type ModifyQP struct {
	Dest             QPDest
	AltDest          QPDest
	QPHandle         uint32
	AttrMask         QPAttrMask
	QKey             uint32
	RQPSN            uint32
	SQPSN            uint32
	DestQPNum        uint32
	QPAccessFlags    AccessFlags
	PkeyIndex        uint16
	AltPkeyIndex     uint16
	QPState          QPState
	CurQPState       QPState
	PathMTU          MTU
	PathMigState     MigState
	EnSQDAsyncNotify uint8
	MaxRdAtomic      uint8
	MaxDestRdAtomic  uint8
	MinRNRTimer      uint8
	PortNum          uint8
	Timeout          uint8
	RetryCnt         uint8
	RNRRetry         uint8
	AltPortNum       uint8
	AltTimeout       uint8
}

// ModifyQPSize is the size of ib_uverbs_modify_qp in bytes.
const ModifyQPSize = 112

// Put encodes v into the first ModifyQPSize bytes of b, zeroing what is reserved; b must be at least that long.
func (v *ModifyQP) Put(b []byte) {
	clear(b[:ModifyQPSize])
	v.Dest.Put(b[0:32])
	v.AltDest.Put(b[32:64])
	le.PutUint32(b[64:], v.QPHandle)
	le.PutUint32(b[68:], uint32(v.AttrMask))
	le.PutUint32(b[72:], v.QKey)
	le.PutUint32(b[76:], v.RQPSN)
	le.PutUint32(b[80:], v.SQPSN)
	le.PutUint32(b[84:], v.DestQPNum)
	le.PutUint32(b[88:], uint32(v.QPAccessFlags))
	le.PutUint16(b[92:], v.PkeyIndex)
	le.PutUint16(b[94:], v.AltPkeyIndex)
	b[96] = uint8(v.QPState)
	b[97] = uint8(v.CurQPState)
	b[98] = uint8(v.PathMTU)
	b[99] = uint8(v.PathMigState)
	b[100] = v.EnSQDAsyncNotify
	b[101] = v.MaxRdAtomic
	b[102] = v.MaxDestRdAtomic
	b[103] = v.MinRNRTimer
	b[104] = v.PortNum
	b[105] = v.Timeout
	b[106] = v.RetryCnt
	b[107] = v.RNRRetry
	b[108] = v.AltPortNum
	b[109] = v.AltTimeout
}

// Parse decodes the first ModifyQPSize bytes of b; a shorter b is ErrShort and leaves v alone.
func (v *ModifyQP) Parse(b []byte) error {
	if len(b) < ModifyQPSize {
		return ErrShort
	}
	_ = v.Dest.Parse(b[0:32])
	_ = v.AltDest.Parse(b[32:64])
	v.QPHandle = le.Uint32(b[64:])
	v.AttrMask = QPAttrMask(le.Uint32(b[68:]))
	v.QKey = le.Uint32(b[72:])
	v.RQPSN = le.Uint32(b[76:])
	v.SQPSN = le.Uint32(b[80:])
	v.DestQPNum = le.Uint32(b[84:])
	v.QPAccessFlags = AccessFlags(le.Uint32(b[88:]))
	v.PkeyIndex = le.Uint16(b[92:])
	v.AltPkeyIndex = le.Uint16(b[94:])
	v.QPState = QPState(b[96])
	v.CurQPState = QPState(b[97])
	v.PathMTU = MTU(b[98])
	v.PathMigState = MigState(b[99])
	v.EnSQDAsyncNotify = b[100]
	v.MaxRdAtomic = b[101]
	v.MaxDestRdAtomic = b[102]
	v.MinRNRTimer = b[103]
	v.PortNum = b[104]
	v.Timeout = b[105]
	v.RetryCnt = b[106]
	v.RNRRetry = b[107]
	v.AltPortNum = b[108]
	v.AltTimeout = b[109]
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

// PostSend is struct ib_uverbs_post_send. With WRCount and SGECount 0 it is the doorbell of rxe:
// the work requests lie in the send queue's ring; WQESize must still be at least SendWRSize.
type PostSend struct {
	Response uint64
	QPHandle uint32
	WRCount  uint32
	SGECount uint32
	WQESize  uint32
}

// PostSendSize is the size of ib_uverbs_post_send in bytes.
const PostSendSize = 24

// Put encodes v into the first PostSendSize bytes of b, zeroing what is reserved; b must be at least that long.
func (v *PostSend) Put(b []byte) {
	clear(b[:PostSendSize])
	le.PutUint64(b[0:], v.Response)
	le.PutUint32(b[8:], v.QPHandle)
	le.PutUint32(b[12:], v.WRCount)
	le.PutUint32(b[16:], v.SGECount)
	le.PutUint32(b[20:], v.WQESize)
}

// Parse decodes the first PostSendSize bytes of b; a shorter b is ErrShort and leaves v alone.
func (v *PostSend) Parse(b []byte) error {
	if len(b) < PostSendSize {
		return ErrShort
	}
	v.Response = le.Uint64(b[0:])
	v.QPHandle = le.Uint32(b[8:])
	v.WRCount = le.Uint32(b[12:])
	v.SGECount = le.Uint32(b[16:])
	v.WQESize = le.Uint32(b[20:])
	return nil
}

// PostSendResp is struct ib_uverbs_post_send_resp.
type PostSendResp struct {
	BadWR uint32
}

// PostSendRespSize is the size of ib_uverbs_post_send_resp in bytes.
const PostSendRespSize = 4

// Put encodes v into the first PostSendRespSize bytes of b, zeroing what is reserved; b must be at least that long.
func (v *PostSendResp) Put(b []byte) {
	clear(b[:PostSendRespSize])
	le.PutUint32(b[0:], v.BadWR)
}

// Parse decodes the first PostSendRespSize bytes of b; a shorter b is ErrShort and leaves v alone.
func (v *PostSendResp) Parse(b []byte) error {
	if len(b) < PostSendRespSize {
		return ErrShort
	}
	v.BadWR = le.Uint32(b[0:])
	return nil
}

// SendWRSize is the size of struct ib_uverbs_send_wr, the least WQESize that POST_SEND takes.
const SendWRSize = 56
