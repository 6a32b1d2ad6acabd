package netlinkmgr

import (
	"io/fs"
	"runtime"
	"syscall"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
)

func moduleManager(files map[string]string) *Manager {
	root := fstest.MapFS{}
	for p, s := range files {
		root[p] = &fstest.MapFile{Data: []byte(s)}
	}
	return New(Kernel{Root: root, Release: "6.12", ModuleFiles: func(name string) ([]string, error) {
		list, ok := map[string][]string{
			"rdma_rxe":      {"/lib/modules/6.12/ib_core.ko.xz", "/lib/modules/6.12/udp-tunnel.ko.xz", "/lib/modules/6.12/rdma_rxe.ko.xz"},
			"ib_umad":       {"/lib/modules/6.12/ib_core.ko.xz", "/lib/modules/6.12/ib_umad.ko.xz"},
			"crc32_generic": {"/lib/modules/6.12/crc32_generic.ko.xz"},
			"builtin":       nil,
		}[name]
		if !ok {
			return nil, fs.ErrNotExist
		}
		return list, nil
	}})
}

func TestModulesFor(t *testing.T) {
	files := map[string]string{}
	load := func(want ...string) (out []string) {
		t.Helper()
		list := must.Get(moduleManager(files).Missing(want...))(t)
		for _, f := range list {
			out = append(out, f.Name)
		}
		return out
	}
	require.Equal(t, []string{"crc32_generic", "ib_core", "udp_tunnel", "rdma_rxe", "ib_umad"}, load("rdma_rxe", "ib-umad", "builtin"))
	files["proc/crypto"] = "name         : crc32\ndriver       : crc32-generic\n"
	require.Equal(t, []string{"ib_core", "udp_tunnel", "rdma_rxe"}, load("rdma_rxe"))
	files["sys/module/ib_core/initstate"] = "live\n"
	files["sys/module/udp_tunnel/initstate"] = "coming\n"
	require.Equal(t, []string{"udp_tunnel", "rdma_rxe"}, load("rdma_rxe"))
	files["sys/module/nosuch/parameters/x"] = "1"
	require.Empty(t, load("nosuch"), "built in: no initstate, no file")
	must.Fail(moduleManager(files).Missing("other"))(t, syscall.ENOENT)
}

func TestInsert(t *testing.T) {
	m := moduleManager(nil)
	var answer error
	m.k.InsertModule = func(string) error { return answer }
	f := ModuleFile{Name: "x", Path: "lib/x.ko"}
	fresh := must.Get(m.insert(f))(t)
	require.True(t, fresh)
	answer = syscall.EEXIST
	fresh = must.Get(m.insert(f))(t)
	require.False(t, fresh)
	for errno, advice := range map[syscall.Errno]string{
		syscall.ENOENT: "symbols", syscall.ENOEXEC: "not built for", syscall.Errno(126): "signed", syscall.Errno(129): "signed", syscall.ENOMEM: "dmesg",
	} {
		answer = errno
		_, err := m.insert(f)
		require.ErrorIs(t, err, errno)
		require.ErrorContains(t, err, advice)
	}
}

func TestInstallHint(t *testing.T) {
	for release, want := range map[string]string{
		"ID=debian\n":                 "apt-get install linux-image-" + runtime.GOARCH,
		"ID=ubuntu\nID_LIKE=debian\n": "apt-get install linux-modules-extra-6.12",
		"NAME=x\nID=\"rocky\"\nID_LIKE=\"rhel centos fedora\"\n": "dnf install '*/6.12/*/rdma_rxe.ko*'",
		"ID='opensuse-leap'\nID_LIKE=\"suse opensuse\"":          "zypper install kernel-default",
		"ID=mint\nID_LIKE=\"ubuntu debian\"":                     "linux-modules-extra-6.12",
		"ID=arch":                                                "pacman -S linux",
		"ID=plan9":                                               "",
		"":                                                       "",
	} {
		got := moduleManager(map[string]string{"etc/os-release": release}).InstallHint()
		if want == "" {
			require.Empty(t, got)
		}
		require.Contains(t, got, want, release)
	}
	require.Contains(t, moduleManager(map[string]string{"usr/lib/os-release": "ID=alpine\n"}).InstallHint(), "apk add")
	e := &NoModuleError{Module: "rdma_rxe", Release: "6.12", Dir: "/lib/modules/6.12"}
	require.Contains(t, e.Error(), "rdmashim vm run", "where no package is known")
}
