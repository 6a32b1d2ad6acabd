//go:build guest && linux

package guesttest

import (
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/host"
	"github.com/rdmashim/rdmashim/kshim/verbs"
	"github.com/rdmashim/rdmashim/uapi"
)

// TestListed: the list's facts, read without opening, are the device's.
func TestListed(t *testing.T) {
	kernel(t)
	list, err := uapi.Devices()
	require.NoError(t, err)
	var listed *uapi.DeviceInfo
	for i := range list {
		if list[i].Kind == "host" {
			require.Nil(t, listed, "one kernel device")
			listed = &list[i]
		}
	}
	require.NotNil(t, listed)
	require.Equal(t, "host:"+device, listed.Device)
	d, err := uapi.Open(listed.Device, uapi.OpenConfig{})
	require.NoError(t, err)
	defer d.Close()
	info, err := d.QueryDevice()
	require.NoError(t, err)
	require.NotZero(t, info.MaxMessage)
	listed.Open = true
	listed.MaxMessage, listed.MaxMRSize, listed.MaxMR, listed.MaxQP = info.MaxMessage, info.MaxMRSize, info.MaxMR, info.MaxQP
	listed.MaxCQ, listed.MaxCQE, listed.MaxDepth, listed.MaxSGE, listed.MaxRdAtomic = info.MaxCQ, info.MaxCQE, info.MaxDepth, info.MaxSGE, info.MaxRdAtomic
	require.Equal(t, *listed, info)
	counters, err := d.Counters()
	require.NoError(t, err)
	require.Contains(t, counters, "rcvd_pkts")
}

// TestGIDTable: the ioctl and sysfs tell the same.
func TestGIDTable(t *testing.T) {
	k := kernel(t)
	c, err := verbs.Open(k, device)
	require.NoError(t, err)
	defer c.Close()
	gids, err := c.GIDs(1)
	require.NoError(t, err)
	require.NotEmpty(t, gids)
	names, err := k.ReadDir("/sys/class/infiniband/" + device + "/ports/1/gids")
	require.NoError(t, err)
	seen := 0
	for _, name := range names {
		text := attribute(t, k, "/sys/class/infiniband/"+device+"/ports/1/gids/"+name)
		if strings.Trim(text, "0:") != "" {
			seen++
		}
	}
	require.Len(t, gids, seen)
	require.Equal(t, abi.GIDTypeRoCEv2, gids[0].Type)
	require.NotZero(t, gids[0].IfIndex)
}

func TestOpenRefuses(t *testing.T) {
	k := kernel(t)
	_, err := uapi.Open("rxe9", uapi.OpenConfig{})
	require.ErrorIs(t, err, syscall.ENODEV)
	require.ErrorContains(t, err, device, "what there is instead")
	require.ErrorContains(t, err, "soft")

	const node = "/dev/infiniband/uverbs0"
	require.NoError(t, os.Rename(node, node+".away"))
	_, err = uapi.Open(device, uapi.OpenConfig{})
	require.NoError(t, os.Rename(node+".away", node))
	require.ErrorIs(t, err, syscall.ENOENT)
	require.ErrorContains(t, err, node)

	for path, errno := range map[string]syscall.Errno{
		"/dev/infiniband/uverbs9": syscall.ENOENT,
		"/dev/null":               syscall.ENOENT, // not ours
		"/sys/class/infiniband_verbs/uverbs0/none":   syscall.ENOENT,
		"/sys/class/infiniband_verbs/uverbs0":        syscall.EISDIR,
		"/sys/class/infiniband_verbs/abi_version/no": syscall.ENOTDIR,
	} {
		_, err := k.Open(path)
		require.ErrorIs(t, err, errno, path)
	}
	_, err = k.ReadDir("/sys/class/none")
	require.ErrorIs(t, err, syscall.ENOENT)
	_, err = k.ReadDir("/etc")
	require.ErrorIs(t, err, syscall.ENOENT)
	for _, fd := range []int32{-1, 0, 1, 9999} {
		_, err = k.Adopt(fd)
		require.ErrorIs(t, err, syscall.EBADF)
	}
}

// TestRefusedCalls: the kernel refuses calls that a kind of file does not have,
// and calls that would harm the caller do not reach it.
func TestRefusedCalls(t *testing.T) {
	r := newRaw(t, kernel(t))
	_, err := r.f.Read(t.Context(), r.page)
	require.ErrorIs(t, err, syscall.EINVAL)
	_, err = r.f.Write(nil)
	require.ErrorIs(t, err, syscall.EINVAL)
	_, err = r.f.Mmap(1<<63, 4096)
	require.ErrorIs(t, err, syscall.EINVAL)
	_, err = r.f.Mmap(0, 0)
	require.ErrorIs(t, err, syscall.EINVAL)
	_, err = r.f.Mmap(0, 4096)
	require.ErrorIs(t, err, syscall.EINVAL, "nothing waits to be mapped")
	require.ErrorIs(t, r.f.Munmap(nil), syscall.EINVAL)
	require.ErrorIs(t, r.f.Munmap(r.page), syscall.EINVAL)
	require.ErrorIs(t, r.f.Ioctl(nil), syscall.EFAULT)
	arg := r.page[:abi.IoctlHdrSize]
	(&abi.IoctlHdr{Length: 4000, NumAttrs: 200, DriverID: abi.DriverRXE}).Put(arg)
	require.ErrorIs(t, r.f.Ioctl(arg), syscall.EFAULT, "the header says more than is there")

	k, err := host.New(host.Options{})
	require.NoError(t, err)
	f, err := k.Open("/sys/class/infiniband_verbs/abi_version")
	require.NoError(t, err)
	_, err = f.Write([]byte("7"))
	require.ErrorIs(t, err, syscall.EBADF)
	require.ErrorIs(t, f.Ioctl(make([]byte, 64)), syscall.ENOTTY)
	_, err = f.Mmap(0, 4096)
	require.ErrorIs(t, err, syscall.EACCES)
	require.NoError(t, f.Close())
}
