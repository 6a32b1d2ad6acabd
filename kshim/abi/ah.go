package abi

// AHAttr is struct ib_uverbs_ah_attr with its struct ib_uverbs_global_route.
// The order of its fields is not that of QPDest.
type AHAttr struct {
	DGID         [16]byte
	FlowLabel    uint32
	SGIDIndex    uint8
	HopLimit     uint8
	TrafficClass uint8
	DLID         uint16
	SL           uint8
	SrcPathBits  uint8
	StaticRate   uint8
	IsGlobal     uint8
	PortNum      uint8
}

// AHAttrSize is the size of ib_uverbs_ah_attr in bytes.
const AHAttrSize = 32

// Put encodes v into the first AHAttrSize bytes of b, zeroing what is reserved; b must be at least that long.
func (v *AHAttr) Put(b []byte) {
	clear(b[:AHAttrSize])
	copy(b[0:16], v.DGID[:])
	le.PutUint32(b[16:], v.FlowLabel)
	b[20] = v.SGIDIndex
	b[21] = v.HopLimit
	b[22] = v.TrafficClass
	le.PutUint16(b[24:], v.DLID)
	b[26] = v.SL
	b[27] = v.SrcPathBits
	b[28] = v.StaticRate
	b[29] = v.IsGlobal
	b[30] = v.PortNum
}

// Parse decodes the first AHAttrSize bytes of b; a shorter b is ErrShort and leaves v alone.
func (v *AHAttr) Parse(b []byte) error {
	if len(b) < AHAttrSize {
		return ErrShort
	}
	copy(v.DGID[:], b[0:16])
	v.FlowLabel = le.Uint32(b[16:])
	v.SGIDIndex = b[20]
	v.HopLimit = b[21]
	v.TrafficClass = b[22]
	v.DLID = le.Uint16(b[24:])
	v.SL = b[26]
	v.SrcPathBits = b[27]
	v.StaticRate = b[28]
	v.IsGlobal = b[29]
	v.PortNum = b[30]
	return nil
}

// CreateAH is struct ib_uverbs_create_ah.
type CreateAH struct {
	Response   uint64
	UserHandle uint64
	PDHandle   uint32
	Reserved   uint32
	Attr       AHAttr
}

// CreateAHSize is the size of ib_uverbs_create_ah in bytes.
const CreateAHSize = 56

// Put encodes v into the first CreateAHSize bytes of b, zeroing what is reserved; b must be at least that long.
func (v *CreateAH) Put(b []byte) {
	clear(b[:CreateAHSize])
	le.PutUint64(b[0:], v.Response)
	le.PutUint64(b[8:], v.UserHandle)
	le.PutUint32(b[16:], v.PDHandle)
	le.PutUint32(b[20:], v.Reserved)
	v.Attr.Put(b[24:56])
}

// Parse decodes the first CreateAHSize bytes of b; a shorter b is ErrShort and leaves v alone.
func (v *CreateAH) Parse(b []byte) error {
	if len(b) < CreateAHSize {
		return ErrShort
	}
	v.Response = le.Uint64(b[0:])
	v.UserHandle = le.Uint64(b[8:])
	v.PDHandle = le.Uint32(b[16:])
	v.Reserved = le.Uint32(b[20:])
	_ = v.Attr.Parse(b[24:56])
	return nil
}

// CreateAHResp is struct ib_uverbs_create_ah_resp; the driver's part follows it.
type CreateAHResp struct {
	AHHandle uint32
}

// CreateAHRespSize is the size of ib_uverbs_create_ah_resp in bytes.
const CreateAHRespSize = 4

// Put encodes v into the first CreateAHRespSize bytes of b, zeroing what is reserved; b must be at least that long.
func (v *CreateAHResp) Put(b []byte) {
	clear(b[:CreateAHRespSize])
	le.PutUint32(b[0:], v.AHHandle)
}

// Parse decodes the first CreateAHRespSize bytes of b; a shorter b is ErrShort and leaves v alone.
func (v *CreateAHResp) Parse(b []byte) error {
	if len(b) < CreateAHRespSize {
		return ErrShort
	}
	v.AHHandle = le.Uint32(b[0:])
	return nil
}

// DestroyAH is struct ib_uverbs_destroy_ah.
type DestroyAH struct {
	AHHandle uint32
}

// DestroyAHSize is the size of ib_uverbs_destroy_ah in bytes.
const DestroyAHSize = 4

// Put encodes v into the first DestroyAHSize bytes of b, zeroing what is reserved; b must be at least that long.
func (v *DestroyAH) Put(b []byte) {
	clear(b[:DestroyAHSize])
	le.PutUint32(b[0:], v.AHHandle)
}

// Parse decodes the first DestroyAHSize bytes of b; a shorter b is ErrShort and leaves v alone.
func (v *DestroyAH) Parse(b []byte) error {
	if len(b) < DestroyAHSize {
		return ErrShort
	}
	v.AHHandle = le.Uint32(b[0:])
	return nil
}
