package abi

// ReregFlags says what ReregMR changes: enum ib_mr_rereg of the kernel, IBV_REREG_MR_CHANGE_* of libibverbs.
type ReregFlags uint32

const (
	ReregTranslation ReregFlags = 1 << 0 // Start, Length and HCAVA
	ReregPD          ReregFlags = 1 << 1 // PDHandle
	ReregAccess      ReregFlags = 1 << 2 // AccessFlags

	// ReregSupported is IB_MR_REREG_SUPPORTED.
	ReregSupported = ReregTranslation | ReregPD | ReregAccess
)

var reregFlagNames = []flagName{{1, "TRANS"}, {2, "PD"}, {4, "ACCESS"}}

// String gives the flags' names, joined by |.
func (v ReregFlags) String() string { return flagString(uint32(v), reregFlagNames) }

// ReregMR is struct ib_uverbs_rereg_mr. Only the fields that Flags names count.
type ReregMR struct {
	Response    uint64
	MRHandle    uint32
	Flags       ReregFlags
	Start       uint64
	Length      uint64
	HCAVA       uint64
	PDHandle    uint32
	AccessFlags AccessFlags
}

// ReregMRSize is the size of ib_uverbs_rereg_mr in bytes.
const ReregMRSize = 48

// Put encodes v into the first ReregMRSize bytes of b, zeroing what is reserved; b must be at least that long.
func (v *ReregMR) Put(b []byte) {
	clear(b[:ReregMRSize])
	le.PutUint64(b[0:], v.Response)
	le.PutUint32(b[8:], v.MRHandle)
	le.PutUint32(b[12:], uint32(v.Flags))
	le.PutUint64(b[16:], v.Start)
	le.PutUint64(b[24:], v.Length)
	le.PutUint64(b[32:], v.HCAVA)
	le.PutUint32(b[40:], v.PDHandle)
	le.PutUint32(b[44:], uint32(v.AccessFlags))
}

// Parse decodes the first ReregMRSize bytes of b; a shorter b is ErrShort and leaves v alone.
func (v *ReregMR) Parse(b []byte) error {
	if len(b) < ReregMRSize {
		return ErrShort
	}
	v.Response = le.Uint64(b[0:])
	v.MRHandle = le.Uint32(b[8:])
	v.Flags = ReregFlags(le.Uint32(b[12:]))
	v.Start = le.Uint64(b[16:])
	v.Length = le.Uint64(b[24:])
	v.HCAVA = le.Uint64(b[32:])
	v.PDHandle = le.Uint32(b[40:])
	v.AccessFlags = AccessFlags(le.Uint32(b[44:]))
	return nil
}

// ReregMRResp is struct ib_uverbs_rereg_mr_resp.
type ReregMRResp struct {
	LKey uint32
	RKey uint32
}

// ReregMRRespSize is the size of ib_uverbs_rereg_mr_resp in bytes.
const ReregMRRespSize = 8

// Put encodes v into the first ReregMRRespSize bytes of b, zeroing what is reserved; b must be at least that long.
func (v *ReregMRResp) Put(b []byte) {
	clear(b[:ReregMRRespSize])
	le.PutUint32(b[0:], v.LKey)
	le.PutUint32(b[4:], v.RKey)
}

// Parse decodes the first ReregMRRespSize bytes of b; a shorter b is ErrShort and leaves v alone.
func (v *ReregMRResp) Parse(b []byte) error {
	if len(b) < ReregMRRespSize {
		return ErrShort
	}
	v.LKey = le.Uint32(b[0:])
	v.RKey = le.Uint32(b[4:])
	return nil
}
