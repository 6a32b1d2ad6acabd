package abi

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
