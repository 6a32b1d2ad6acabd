package abi

// UCMInitQPAttr is struct rdma_ucm_init_qp_attr.
type UCMInitQPAttr struct {
	Response uint64
	ID       uint32
	QPState  uint32 // a QPState
}

// UCMInitQPAttrSize is the size of rdma_ucm_init_qp_attr in bytes.
const UCMInitQPAttrSize = 16

// Put encodes v into the first UCMInitQPAttrSize bytes of b, zeroing what is reserved; b must be at least that long.
func (v *UCMInitQPAttr) Put(b []byte) {
	clear(b[:UCMInitQPAttrSize])
	le.PutUint64(b[0:], v.Response)
	le.PutUint32(b[8:], v.ID)
	le.PutUint32(b[12:], v.QPState)
}

// Parse decodes the first UCMInitQPAttrSize bytes of b; a shorter b is ErrShort and leaves v alone.
func (v *UCMInitQPAttr) Parse(b []byte) error {
	if len(b) < UCMInitQPAttrSize {
		return ErrShort
	}
	v.Response = le.Uint64(b[0:])
	v.ID = le.Uint32(b[8:])
	v.QPState = le.Uint32(b[12:])
	return nil
}

// QPAttr is struct ib_uverbs_qp_attr, the answer to INIT_QP_ATTR. Its address vectors
// are AHAttr where MODIFY_QP has QPDest.
type QPAttr struct {
	QPAttrMask       QPAttrMask
	QPState          uint32
	CurQPState       uint32
	PathMTU          uint32
	PathMigState     uint32
	QKey             uint32
	RQPSN            uint32
	SQPSN            uint32
	DestQPNum        uint32
	QPAccessFlags    AccessFlags
	AHAttr           AHAttr
	AltAHAttr        AHAttr
	MaxSendWR        uint32
	MaxRecvWR        uint32
	MaxSendSGE       uint32
	MaxRecvSGE       uint32
	MaxInlineData    uint32
	PkeyIndex        uint16
	AltPkeyIndex     uint16
	EnSQDAsyncNotify uint8
	SQDraining       uint8
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

// QPAttrSize is the size of ib_uverbs_qp_attr in bytes.
const QPAttrSize = 144

// Put encodes v into the first QPAttrSize bytes of b, zeroing what is reserved; b must be at least that long.
func (v *QPAttr) Put(b []byte) {
	clear(b[:QPAttrSize])
	le.PutUint32(b[0:], uint32(v.QPAttrMask))
	le.PutUint32(b[4:], v.QPState)
	le.PutUint32(b[8:], v.CurQPState)
	le.PutUint32(b[12:], v.PathMTU)
	le.PutUint32(b[16:], v.PathMigState)
	le.PutUint32(b[20:], v.QKey)
	le.PutUint32(b[24:], v.RQPSN)
	le.PutUint32(b[28:], v.SQPSN)
	le.PutUint32(b[32:], v.DestQPNum)
	le.PutUint32(b[36:], uint32(v.QPAccessFlags))
	v.AHAttr.Put(b[40:72])
	v.AltAHAttr.Put(b[72:104])
	le.PutUint32(b[104:], v.MaxSendWR)
	le.PutUint32(b[108:], v.MaxRecvWR)
	le.PutUint32(b[112:], v.MaxSendSGE)
	le.PutUint32(b[116:], v.MaxRecvSGE)
	le.PutUint32(b[120:], v.MaxInlineData)
	le.PutUint16(b[124:], v.PkeyIndex)
	le.PutUint16(b[126:], v.AltPkeyIndex)
	b[128] = v.EnSQDAsyncNotify
	b[129] = v.SQDraining
	b[130] = v.MaxRdAtomic
	b[131] = v.MaxDestRdAtomic
	b[132] = v.MinRNRTimer
	b[133] = v.PortNum
	b[134] = v.Timeout
	b[135] = v.RetryCnt
	b[136] = v.RNRRetry
	b[137] = v.AltPortNum
	b[138] = v.AltTimeout
}

// Parse decodes the first QPAttrSize bytes of b; a shorter b is ErrShort and leaves v alone.
func (v *QPAttr) Parse(b []byte) error {
	if len(b) < QPAttrSize {
		return ErrShort
	}
	v.QPAttrMask = QPAttrMask(le.Uint32(b[0:]))
	v.QPState = le.Uint32(b[4:])
	v.CurQPState = le.Uint32(b[8:])
	v.PathMTU = le.Uint32(b[12:])
	v.PathMigState = le.Uint32(b[16:])
	v.QKey = le.Uint32(b[20:])
	v.RQPSN = le.Uint32(b[24:])
	v.SQPSN = le.Uint32(b[28:])
	v.DestQPNum = le.Uint32(b[32:])
	v.QPAccessFlags = AccessFlags(le.Uint32(b[36:]))
	_ = v.AHAttr.Parse(b[40:72])
	_ = v.AltAHAttr.Parse(b[72:104])
	v.MaxSendWR = le.Uint32(b[104:])
	v.MaxRecvWR = le.Uint32(b[108:])
	v.MaxSendSGE = le.Uint32(b[112:])
	v.MaxRecvSGE = le.Uint32(b[116:])
	v.MaxInlineData = le.Uint32(b[120:])
	v.PkeyIndex = le.Uint16(b[124:])
	v.AltPkeyIndex = le.Uint16(b[126:])
	v.EnSQDAsyncNotify = b[128]
	v.SQDraining = b[129]
	v.MaxRdAtomic = b[130]
	v.MaxDestRdAtomic = b[131]
	v.MinRNRTimer = b[132]
	v.PortNum = b[133]
	v.Timeout = b[134]
	v.RetryCnt = b[135]
	v.RNRRetry = b[136]
	v.AltPortNum = b[137]
	v.AltTimeout = b[138]
	return nil
}

// QPDest is the address in the order of MODIFY_QP.
func (v *AHAttr) QPDest() QPDest {
	return QPDest{
		DGID: v.DGID, FlowLabel: v.FlowLabel, DLID: v.DLID, SGIDIndex: v.SGIDIndex, HopLimit: v.HopLimit, TrafficClass: v.TrafficClass,
		SL: v.SL, SrcPathBits: v.SrcPathBits, StaticRate: v.StaticRate, IsGlobal: v.IsGlobal, PortNum: v.PortNum,
	}
}
