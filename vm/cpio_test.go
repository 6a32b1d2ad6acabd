package vm

import (
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/u-root/u-root/pkg/cpio"
)

// TestCPIOBytes holds the header to the kernel's description of the format
// (Documentation/driver-api/early-userspace/buffer-format.rst): magic, inode,
// mode, user, group, links, time, size, four device numbers, length of the
// name, checksum, name, data, each of the last two padded.
func TestCPIOBytes(t *testing.T) {
	a := newArchive([]byte("base!"))
	a.add("d/f", cpio.S_IFREG|0o644, []byte("x"))
	a.add("d/g", cpio.S_IFLNK|0o777, []byte("f"))
	require.NoError(t, a.end())
	const zero = "00000000"
	require.Equal(t, "base!\x00\x00\x00"+
		"070701"+"00000001"+"000041ED"+zero+zero+"00000001"+zero+zero+zero+zero+zero+zero+"00000002"+zero+"d\x00"+
		"070701"+"00000002"+"000081A4"+zero+zero+"00000001"+zero+"00000001"+zero+zero+zero+zero+"00000004"+zero+"d/f\x00\x00\x00"+"x\x00\x00\x00"+
		"070701"+"00000003"+"0000A1FF"+zero+zero+"00000001"+zero+"00000001"+zero+zero+zero+zero+"00000004"+zero+"d/g\x00\x00\x00"+"f\x00\x00\x00"+
		"070701"+zero+zero+zero+zero+zero+zero+zero+zero+zero+zero+zero+"0000000B"+zero+"TRAILER!!!\x00\x00\x00\x00",
		a.String())
}
