package vm

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/binary"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
)

// fakeELF is an ELF program with one note.
func fakeELF(note uint32) []byte {
	le := binary.LittleEndian
	b := make([]byte, 64+56)
	copy(b, "\x7fELF\x02\x01\x01")
	le.PutUint16(b[16:], 2)
	le.PutUint16(b[18:], 62)
	le.PutUint32(b[20:], 1)
	le.PutUint64(b[32:], 64) // e_phoff
	le.PutUint16(b[52:], 64)
	le.PutUint16(b[54:], 56) // e_phentsize
	le.PutUint16(b[56:], 1)  // e_phnum
	le.PutUint16(b[58:], 64)
	notes := append(fakeNote("GNU\x00", 3, make([]byte, 5)), fakeNote("Xen\x00", note, make([]byte, 8))...)
	le.PutUint32(b[64:], 4) // PT_NOTE
	le.PutUint64(b[64+8:], uint64(len(b)))
	le.PutUint64(b[64+32:], uint64(len(notes)))
	return append(b, notes...)
}

func fakeNote(name string, kind uint32, desc []byte) []byte {
	le := binary.LittleEndian
	n := le.AppendUint32(nil, uint32(len(name)))
	n = le.AppendUint32(n, uint32(len(desc)))
	n = append(le.AppendUint32(n, kind), name...)
	n = append(n, desc...)
	for len(n)%4 != 0 {
		n = append(n, 0)
	}
	return n
}

// fakeBzImage is a boot sector with a payload, laid out as boot.rst says.
func fakeBzImage(payload []byte) []byte {
	b := make([]byte, 3*512)
	b[0x1f1] = 2 // setup_sects
	copy(b[0x202:], "HdrS")
	binary.LittleEndian.PutUint32(b[0x248:], 16)
	binary.LittleEndian.PutUint32(b[0x24c:], uint32(len(payload)+4))
	b = append(b, make([]byte, 16)...)
	return append(append(b, payload...), 0, 0, 0, 0)
}

// xzKernel is fakeELF(18) and three calls, as the kernel's build compresses
// itself: scripts/xz_wrap.sh, with xz's filter for x86 code.
const xzKernel = "/Td6WFoAAAFpIt42AgEEACEBEACLIW9J4AC2AEFdAD+RRYRoPYmm2orMk+JO8e3vZzEoYx1cpN/S" +
	"GKRpnerBuvDJqHVGHuivNWEvbOseFetoNbf23QmlyaZX1v4HYrwAAAAAAMvY6gQAAVm3AQAAAIM+j/I+MA2LAgAAAAABWVo="

func TestUnpackKernel(t *testing.T) {
	elf := fakeELF(18)
	filtered := must.Get(base64.StdEncoding.DecodeString(xzKernel))(t)
	got := must.Get(unpackKernel(fakeBzImage(filtered)))(t)
	require.Equal(t, append(elf, strings.Repeat("\xe8\x10\x00\x00\x00", 3)...), got)
	var gz bytes.Buffer
	w := gzip.NewWriter(&gz)
	w.Write(elf)
	require.NoError(t, w.Close())
	for name, image := range map[string][]byte{"an ELF": elf, "gzip": fakeBzImage(gz.Bytes()), "not compressed": fakeBzImage(elf)} {
		got, err := unpackKernel(image)
		require.NoError(t, err, name)
		require.Equal(t, elf, got, name)
	}
	for name, image := range map[string][]byte{
		"no PVH": fakeELF(17), "text": []byte("text"), "nothing": nil,
		"garbage inside": fakeBzImage([]byte("garbage")), "cut": fakeBzImage(gz.Bytes())[:3*512+20],
		"cut inside": fakeBzImage(gz.Bytes()[:gz.Len()/2]),
	} {
		must.Fail(unpackKernel(image))(t, errNoPayload, name)
	}
}

func FuzzUnpackKernel(f *testing.F) {
	f.Add(fakeELF(18))
	f.Add(fakeBzImage(fakeELF(18)))
	f.Fuzz(func(t *testing.T, b []byte) { unpackKernel(b) })
}
