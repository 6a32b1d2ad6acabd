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
	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/uapi"
)

// TestListed: the list's facts, read without opening, are the device's.
func TestListed(t *testing.T) {
	kernel(t)
	list := must.Get(uapi.Devices())(t)
	var listed *uapi.DeviceInfo
	for i := range list {
		if list[i].Kind == "host" {
			require.Nil(t, listed, "one kernel device")
			listed = &list[i]
		}
	}
	require.NotNil(t, listed)
	require.Equal(t, "host:"+device, listed.Device)
	d := must.Get(uapi.Open(listed.Device, uapi.OpenConfig{}))(t)
	defer d.Close()
	info := must.Get(d.QueryDevice())(t)
	require.NotZero(t, info.MaxMessage)
	listed.Open = true
	listed.MaxMessage, listed.MaxMRSize, listed.MaxMR, listed.MaxQP = info.MaxMessage, info.MaxMRSize, info.MaxMR, info.MaxQP
	listed.MaxCQ, listed.MaxCQE, listed.MaxDepth, listed.MaxSGE, listed.MaxRdAtomic = info.MaxCQ, info.MaxCQE, info.MaxDepth, info.MaxSGE, info.MaxRdAtomic
	require.Equal(t, *listed, info)
	counters := must.Get(d.Counters())(t)
	require.Contains(t, counters, "rcvd_pkts")
}

// TestGIDTable: the ioctl and sysfs tell the same.
func TestGIDTable(t *testing.T) {
	k := kernel(t)
	c := must.Get(verbs.Open(k, device))(t)
	defer c.Close()
	gids := must.Get(c.GIDs(1))(t)
	require.NotEmpty(t, gids)
	names := must.Get(k.ReadDir("/sys/class/infiniband/" + device + "/ports/1/gids"))(t)
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
	kernel(t)
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
}

// TestRefusedCalls: the kernel refuses calls that a kind of file does not have,
// and calls that would harm the caller do not reach it.
func TestRefusedCalls(t *testing.T) {
	r := newRaw(t, kernel(t))
	must.Fail(r.f.Read(t.Context(), r.page))(t, syscall.EINVAL)
	must.Fail(r.f.Write(nil))(t, syscall.EINVAL)
	must.Fail(r.f.Mmap(1<<63, 4096))(t, syscall.EINVAL)
	must.Fail(r.f.Mmap(0, 0))(t, syscall.EINVAL)
	must.Fail(r.f.Mmap(0, 4096))(t, syscall.EINVAL, "nothing waits to be mapped")
	require.ErrorIs(t, r.f.Munmap(nil), syscall.EINVAL)
	require.ErrorIs(t, r.f.Munmap(r.page), syscall.EINVAL)
	require.ErrorIs(t, r.f.Ioctl(nil), syscall.EFAULT)
	arg := r.page[:abi.IoctlHdrSize]
	(&abi.IoctlHdr{Length: 4000, NumAttrs: 200, DriverID: abi.DriverRXE}).Put(arg)
	require.ErrorIs(t, r.f.Ioctl(arg), syscall.EFAULT, "the header says more than is there")

	k := must.Get(host.New(host.Options{}))(t)
	f := must.Get(k.Open("/sys/class/infiniband_verbs/abi_version"))(t)
	must.Fail(f.Write([]byte("7")))(t, syscall.EBADF)
	require.ErrorIs(t, f.Ioctl(make([]byte, 64)), syscall.ENOTTY)
	must.Fail(f.Mmap(0, 4096))(t, syscall.EACCES)
	require.NoError(t, f.Close())
}
