package abi

import "encoding/binary"

// GetContext is struct ib_uverbs_get_context.
type GetContext struct {
	Response uint64
}

// GetContextSize is the size of ib_uverbs_get_context in bytes.
const GetContextSize = 8

// Put encodes v into the first GetContextSize bytes of b, zeroing what is reserved; b must be at least that long.
func (v *GetContext) Put(b []byte) {
	clear(b[:GetContextSize])
	le.PutUint64(b[0:], v.Response)
}

// Parse decodes the first GetContextSize bytes of b; a shorter b is ErrShort and leaves v alone.
func (v *GetContext) Parse(b []byte) error {
	if len(b) < GetContextSize {
		return ErrShort
	}
	v.Response = le.Uint64(b[0:])
	return nil
}

// GetContextResp is struct ib_uverbs_get_context_resp.
type GetContextResp struct {
	AsyncFD        uint32 // file for asynchronous events
	NumCompVectors uint32
}

// GetContextRespSize is the size of ib_uverbs_get_context_resp in bytes.
const GetContextRespSize = 8

// Put encodes v into the first GetContextRespSize bytes of b, zeroing what is reserved; b must be at least that long.
func (v *GetContextResp) Put(b []byte) {
	clear(b[:GetContextRespSize])
	le.PutUint32(b[0:], v.AsyncFD)
	le.PutUint32(b[4:], v.NumCompVectors)
}

// Parse decodes the first GetContextRespSize bytes of b; a shorter b is ErrShort and leaves v alone.
func (v *GetContextResp) Parse(b []byte) error {
	if len(b) < GetContextRespSize {
		return ErrShort
	}
	v.AsyncFD = le.Uint32(b[0:])
	v.NumCompVectors = le.Uint32(b[4:])
	return nil
}

// QueryDevice is struct ib_uverbs_query_device.
type QueryDevice struct {
	Response uint64
}

// QueryDeviceSize is the size of ib_uverbs_query_device in bytes.
const QueryDeviceSize = 8

// Put encodes v into the first QueryDeviceSize bytes of b, zeroing what is reserved; b must be at least that long.
func (v *QueryDevice) Put(b []byte) {
	clear(b[:QueryDeviceSize])
	le.PutUint64(b[0:], v.Response)
}

// Parse decodes the first QueryDeviceSize bytes of b; a shorter b is ErrShort and leaves v alone.
func (v *QueryDevice) Parse(b []byte) error {
	if len(b) < QueryDeviceSize {
		return ErrShort
	}
	v.Response = le.Uint64(b[0:])
	return nil
}

// QueryDeviceResp is struct ib_uverbs_query_device_resp.
type QueryDeviceResp struct {
	FWVer                 uint64
	NodeGUID              uint64 // big-endian in memory
	SysImageGUID          uint64 // big-endian in memory
	MaxMRSize             uint64
	PageSizeCap           uint64
	VendorID              uint32
	VendorPartID          uint32
	HWVer                 uint32
	MaxQP                 uint32
	MaxQPWR               uint32
	DeviceCapFlags        uint32
	MaxSGE                uint32
	MaxSGERd              uint32
	MaxCQ                 uint32
	MaxCQE                uint32
	MaxMR                 uint32
	MaxPD                 uint32
	MaxQPRdAtom           uint32
	MaxEERdAtom           uint32
	MaxResRdAtom          uint32
	MaxQPInitRdAtom       uint32
	MaxEEInitRdAtom       uint32
	AtomicCap             AtomicCap
	MaxEE                 uint32
	MaxRDD                uint32
	MaxMW                 uint32
	MaxRawIPv6QP          uint32
	MaxRawEthyQP          uint32
	MaxMcastGrp           uint32
	MaxMcastQPAttach      uint32
	MaxTotalMcastQPAttach uint32
	MaxAH                 uint32
	MaxFMR                uint32
	MaxMapPerFMR          uint32
	MaxSRQ                uint32
	MaxSRQWR              uint32
	MaxSRQSGE             uint32
	MaxPkeys              uint16
	LocalCAAckDelay       uint8
	PhysPortCnt           uint8
}

// QueryDeviceRespSize is the size of ib_uverbs_query_device_resp in bytes.
const QueryDeviceRespSize = 176

// Put encodes v into the first QueryDeviceRespSize bytes of b, zeroing what is reserved; b must be at least that long.
func (v *QueryDeviceResp) Put(b []byte) {
	clear(b[:QueryDeviceRespSize])
	le.PutUint64(b[0:], v.FWVer)
	binary.BigEndian.PutUint64(b[8:], v.NodeGUID)
	binary.BigEndian.PutUint64(b[16:], v.SysImageGUID)
	le.PutUint64(b[24:], v.MaxMRSize)
	le.PutUint64(b[32:], v.PageSizeCap)
	le.PutUint32(b[40:], v.VendorID)
	le.PutUint32(b[44:], v.VendorPartID)
	le.PutUint32(b[48:], v.HWVer)
	le.PutUint32(b[52:], v.MaxQP)
	le.PutUint32(b[56:], v.MaxQPWR)
	le.PutUint32(b[60:], v.DeviceCapFlags)
	le.PutUint32(b[64:], v.MaxSGE)
	le.PutUint32(b[68:], v.MaxSGERd)
	le.PutUint32(b[72:], v.MaxCQ)
	le.PutUint32(b[76:], v.MaxCQE)
	le.PutUint32(b[80:], v.MaxMR)
	le.PutUint32(b[84:], v.MaxPD)
	le.PutUint32(b[88:], v.MaxQPRdAtom)
	le.PutUint32(b[92:], v.MaxEERdAtom)
	le.PutUint32(b[96:], v.MaxResRdAtom)
	le.PutUint32(b[100:], v.MaxQPInitRdAtom)
	le.PutUint32(b[104:], v.MaxEEInitRdAtom)
	le.PutUint32(b[108:], uint32(v.AtomicCap))
	le.PutUint32(b[112:], v.MaxEE)
	le.PutUint32(b[116:], v.MaxRDD)
	le.PutUint32(b[120:], v.MaxMW)
	le.PutUint32(b[124:], v.MaxRawIPv6QP)
	le.PutUint32(b[128:], v.MaxRawEthyQP)
	le.PutUint32(b[132:], v.MaxMcastGrp)
	le.PutUint32(b[136:], v.MaxMcastQPAttach)
	le.PutUint32(b[140:], v.MaxTotalMcastQPAttach)
	le.PutUint32(b[144:], v.MaxAH)
	le.PutUint32(b[148:], v.MaxFMR)
	le.PutUint32(b[152:], v.MaxMapPerFMR)
	le.PutUint32(b[156:], v.MaxSRQ)
	le.PutUint32(b[160:], v.MaxSRQWR)
	le.PutUint32(b[164:], v.MaxSRQSGE)
	le.PutUint16(b[168:], v.MaxPkeys)
	b[170] = v.LocalCAAckDelay
	b[171] = v.PhysPortCnt
}

// Parse decodes the first QueryDeviceRespSize bytes of b; a shorter b is ErrShort and leaves v alone.
func (v *QueryDeviceResp) Parse(b []byte) error {
	if len(b) < QueryDeviceRespSize {
		return ErrShort
	}
	v.FWVer = le.Uint64(b[0:])
	v.NodeGUID = binary.BigEndian.Uint64(b[8:])
	v.SysImageGUID = binary.BigEndian.Uint64(b[16:])
	v.MaxMRSize = le.Uint64(b[24:])
	v.PageSizeCap = le.Uint64(b[32:])
	v.VendorID = le.Uint32(b[40:])
	v.VendorPartID = le.Uint32(b[44:])
	v.HWVer = le.Uint32(b[48:])
	v.MaxQP = le.Uint32(b[52:])
	v.MaxQPWR = le.Uint32(b[56:])
	v.DeviceCapFlags = le.Uint32(b[60:])
	v.MaxSGE = le.Uint32(b[64:])
	v.MaxSGERd = le.Uint32(b[68:])
	v.MaxCQ = le.Uint32(b[72:])
	v.MaxCQE = le.Uint32(b[76:])
	v.MaxMR = le.Uint32(b[80:])
	v.MaxPD = le.Uint32(b[84:])
	v.MaxQPRdAtom = le.Uint32(b[88:])
	v.MaxEERdAtom = le.Uint32(b[92:])
	v.MaxResRdAtom = le.Uint32(b[96:])
	v.MaxQPInitRdAtom = le.Uint32(b[100:])
	v.MaxEEInitRdAtom = le.Uint32(b[104:])
	v.AtomicCap = AtomicCap(le.Uint32(b[108:]))
	v.MaxEE = le.Uint32(b[112:])
	v.MaxRDD = le.Uint32(b[116:])
	v.MaxMW = le.Uint32(b[120:])
	v.MaxRawIPv6QP = le.Uint32(b[124:])
	v.MaxRawEthyQP = le.Uint32(b[128:])
	v.MaxMcastGrp = le.Uint32(b[132:])
	v.MaxMcastQPAttach = le.Uint32(b[136:])
	v.MaxTotalMcastQPAttach = le.Uint32(b[140:])
	v.MaxAH = le.Uint32(b[144:])
	v.MaxFMR = le.Uint32(b[148:])
	v.MaxMapPerFMR = le.Uint32(b[152:])
	v.MaxSRQ = le.Uint32(b[156:])
	v.MaxSRQWR = le.Uint32(b[160:])
	v.MaxSRQSGE = le.Uint32(b[164:])
	v.MaxPkeys = le.Uint16(b[168:])
	v.LocalCAAckDelay = b[170]
	v.PhysPortCnt = b[171]
	return nil
}

// QueryPort is struct ib_uverbs_query_port.
type QueryPort struct {
	Response uint64
	PortNum  uint8
}

// QueryPortSize is the size of ib_uverbs_query_port in bytes.
const QueryPortSize = 16

// Put encodes v into the first QueryPortSize bytes of b, zeroing what is reserved; b must be at least that long.
func (v *QueryPort) Put(b []byte) {
	clear(b[:QueryPortSize])
	le.PutUint64(b[0:], v.Response)
	b[8] = v.PortNum
}

// Parse decodes the first QueryPortSize bytes of b; a shorter b is ErrShort and leaves v alone.
func (v *QueryPort) Parse(b []byte) error {
	if len(b) < QueryPortSize {
		return ErrShort
	}
	v.Response = le.Uint64(b[0:])
	v.PortNum = b[8]
	return nil
}

// QueryPortResp is struct ib_uverbs_query_port_resp.
type QueryPortResp struct {
	PortCapFlags  uint32
	MaxMsgSz      uint32
	BadPkeyCntr   uint32
	QkeyViolCntr  uint32
	GIDTblLen     uint32
	PkeyTblLen    uint16
	LID           uint16
	SMLID         uint16
	State         PortState
	MaxMTU        MTU
	ActiveMTU     MTU
	LMC           uint8
	MaxVLNum      uint8
	SMSL          uint8
	SubnetTimeout uint8
	InitTypeReply uint8
	ActiveWidth   uint8
	ActiveSpeed   uint8
	PhysState     PhysState
	LinkLayer     LinkLayer
	Flags         uint8
}

// QueryPortRespSize is the size of ib_uverbs_query_port_resp in bytes.
const QueryPortRespSize = 40

// Put encodes v into the first QueryPortRespSize bytes of b, zeroing what is reserved; b must be at least that long.
func (v *QueryPortResp) Put(b []byte) {
	clear(b[:QueryPortRespSize])
	le.PutUint32(b[0:], v.PortCapFlags)
	le.PutUint32(b[4:], v.MaxMsgSz)
	le.PutUint32(b[8:], v.BadPkeyCntr)
	le.PutUint32(b[12:], v.QkeyViolCntr)
	le.PutUint32(b[16:], v.GIDTblLen)
	le.PutUint16(b[20:], v.PkeyTblLen)
	le.PutUint16(b[22:], v.LID)
	le.PutUint16(b[24:], v.SMLID)
	b[26] = uint8(v.State)
	b[27] = uint8(v.MaxMTU)
	b[28] = uint8(v.ActiveMTU)
	b[29] = v.LMC
	b[30] = v.MaxVLNum
	b[31] = v.SMSL
	b[32] = v.SubnetTimeout
	b[33] = v.InitTypeReply
	b[34] = v.ActiveWidth
	b[35] = v.ActiveSpeed
	b[36] = uint8(v.PhysState)
	b[37] = uint8(v.LinkLayer)
	b[38] = v.Flags
}

// Parse decodes the first QueryPortRespSize bytes of b; a shorter b is ErrShort and leaves v alone.
func (v *QueryPortResp) Parse(b []byte) error {
	if len(b) < QueryPortRespSize {
		return ErrShort
	}
	v.PortCapFlags = le.Uint32(b[0:])
	v.MaxMsgSz = le.Uint32(b[4:])
	v.BadPkeyCntr = le.Uint32(b[8:])
	v.QkeyViolCntr = le.Uint32(b[12:])
	v.GIDTblLen = le.Uint32(b[16:])
	v.PkeyTblLen = le.Uint16(b[20:])
	v.LID = le.Uint16(b[22:])
	v.SMLID = le.Uint16(b[24:])
	v.State = PortState(b[26])
	v.MaxMTU = MTU(b[27])
	v.ActiveMTU = MTU(b[28])
	v.LMC = b[29]
	v.MaxVLNum = b[30]
	v.SMSL = b[31]
	v.SubnetTimeout = b[32]
	v.InitTypeReply = b[33]
	v.ActiveWidth = b[34]
	v.ActiveSpeed = b[35]
	v.PhysState = PhysState(b[36])
	v.LinkLayer = LinkLayer(b[37])
	v.Flags = b[38]
	return nil
}

// GIDEntry is struct ib_uverbs_gid_entry, an element of QUERY_GID_TABLE and the answer of QUERY_GID_ENTRY.
type GIDEntry struct {
	GID           [16]byte
	GIDIndex      uint32
	PortNum       uint32
	GIDType       GIDType
	NetdevIfindex uint32 // 0 if no network interface belongs to it
}

// GIDEntrySize is the size of ib_uverbs_gid_entry in bytes.
const GIDEntrySize = 32

// Put encodes v into the first GIDEntrySize bytes of b, zeroing what is reserved; b must be at least that long.
func (v *GIDEntry) Put(b []byte) {
	clear(b[:GIDEntrySize])
	copy(b[0:16], v.GID[:])
	le.PutUint32(b[16:], v.GIDIndex)
	le.PutUint32(b[20:], v.PortNum)
	le.PutUint32(b[24:], uint32(v.GIDType))
	le.PutUint32(b[28:], v.NetdevIfindex)
}

// Parse decodes the first GIDEntrySize bytes of b; a shorter b is ErrShort and leaves v alone.
func (v *GIDEntry) Parse(b []byte) error {
	if len(b) < GIDEntrySize {
		return ErrShort
	}
	copy(v.GID[:], b[0:16])
	v.GIDIndex = le.Uint32(b[16:])
	v.PortNum = le.Uint32(b[20:])
	v.GIDType = GIDType(le.Uint32(b[24:]))
	v.NetdevIfindex = le.Uint32(b[28:])
	return nil
}
