package netlinkmgr

import (
	"bytes"
	"compress/gzip"
	"io"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"
	"github.com/ulikunitz/xz"
)

const dep = `kernel/core/ib_core.ko.xz:
kernel/core/ib_uverbs.ko.xz: kernel/core/ib_core.ko.xz
kernel/net/udp_tunnel.ko.xz:
kernel/rxe/rdma_rxe.ko.xz: kernel/core/ib_uverbs.ko.xz kernel/net/udp_tunnel.ko.xz kernel/core/ib_core.ko.xz
kernel/x/crc32-pclmul.ko.xz:
kernel/y/crc32_generic.ko.xz:
kernel/z/a.ko: kernel/z/b.ko
kernel/z/b.ko: kernel/z/a.ko
kernel/z/c.ko: kernel/z/missing.ko
# a comment: with a colon
no colon
`

func moduleManager(files map[string]string) *Manager {
	root := fstest.MapFS{}
	for p, s := range files {
		root[p] = &fstest.MapFile{Data: []byte(s)}
	}
	return New(Kernel{Root: root, Release: "6.12"})
}

func names(list []ModuleFile) (out []string) {
	for _, f := range list {
		out = append(out, f.Name)
	}
	return out
}

func TestModuleOrder(t *testing.T) {
	deps := parseModulesDep(dep)
	list, ok := deps.order("rdma_rxe")
	require.True(t, ok)
	require.Equal(t, []string{"kernel/core/ib_core.ko.xz", "kernel/net/udp_tunnel.ko.xz", "kernel/core/ib_uverbs.ko.xz", "kernel/rxe/rdma_rxe.ko.xz"}, list)
	_, ok = deps.order("nosuch")
	require.False(t, ok)
	_, ok = deps.order("c")
	require.False(t, ok, "what it needs is not there")
	list, ok = deps.order("a")
	require.True(t, ok, "a circle ends")
	require.Len(t, list, 2)
}

func TestModulesFor(t *testing.T) {
	files := map[string]string{"lib/modules/6.12/modules.dep": dep}
	load := func(want ...string) []string {
		t.Helper()
		list, err := moduleManager(files).modulesFor("lib/modules/6.12", want)
		require.NoError(t, err)
		return names(list)
	}
	require.Equal(t, []string{"crc32_generic", "ib_core", "udp_tunnel", "ib_uverbs", "rdma_rxe"}, load("rdma-rxe", "rdma_rxe")[:5])
	files["lib/modules/6.12/modules.alias"] = "alias crypto-crc32 crc32_pclmul\nalias crypto-crc32 crc32_generic\nalias crypto-md5 md5\n"
	require.Equal(t, []string{"crc32_pclmul", "crc32_generic", "ib_core", "udp_tunnel", "ib_uverbs", "rdma_rxe"}, load("rdma_rxe"))
	files["proc/crypto"] = "name         : crc32\ndriver       : crc32-generic\n"
	require.Equal(t, []string{"ib_core", "udp_tunnel", "ib_uverbs", "rdma_rxe"}, load("rdma_rxe"))
	files["sys/module/ib_core/initstate"] = "live\n"
	files["sys/module/udp_tunnel/initstate"] = "coming\n"
	require.Equal(t, []string{"udp_tunnel", "ib_uverbs", "rdma_rxe"}, load("rdma_rxe"))
	files["lib/modules/6.12/modules.builtin"] = "kernel/rxe/rdma_rxe.ko\n"
	require.Empty(t, load("rdma_rxe"))
	files["sys/module/nosuch/parameters/x"] = "1"
	require.Empty(t, load("nosuch"), "built in: no initstate, no file")
	_, err := moduleManager(files).modulesFor("lib/modules/6.12", []string{"other"})
	require.ErrorIs(t, err, syscall.ENOENT)
}

func TestInsert(t *testing.T) {
	m := moduleManager(nil)
	var answer error
	m.k.InsertModule = func(string) error { return answer }
	f := ModuleFile{Name: "x", Path: "lib/x.ko"}
	fresh, err := m.insert(f)
	require.NoError(t, err)
	require.True(t, fresh)
	answer = syscall.EEXIST
	fresh, err = m.insert(f)
	require.NoError(t, err)
	require.False(t, fresh)
	answer = syscall.ENODEV
	_, err = m.insert(f)
	require.ErrorIs(t, err, syscall.ENODEV)
	f.optional = true
	_, err = m.insert(f)
	require.NoError(t, err, "the machine has not what it drives")
	f.optional = false
	for errno, advice := range map[syscall.Errno]string{
		syscall.ENOENT: "symbols", syscall.ENOEXEC: "not built for", syscall.Errno(ekeyrejected): "signed", syscall.ENOMEM: "dmesg",
	} {
		answer = errno
		_, err = m.insert(f)
		require.ErrorIs(t, err, errno)
		require.ErrorContains(t, err, advice)
	}
}

func TestUnpackModule(t *testing.T) {
	image := []byte(strings.Repeat("\x7fELF module ", 1000))
	pack := map[string]func(io.Writer) io.WriteCloser{
		".xz":  func(w io.Writer) io.WriteCloser { z, err := xz.NewWriter(w); require.NoError(t, err); return z },
		".gz":  func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) },
		".zst": func(w io.Writer) io.WriteCloser { z, err := zstd.NewWriter(w); require.NoError(t, err); return z },
	}
	for suffix, make := range pack {
		var b bytes.Buffer
		z := make(&b)
		_, err := z.Write(image)
		require.NoError(t, err)
		require.NoError(t, z.Close())
		got, compressed, err := unpackModule("/lib/x.ko"+suffix, bytes.NewReader(b.Bytes()))
		require.NoError(t, err, suffix)
		require.True(t, compressed)
		require.Equal(t, image, got)
		for _, bad := range [][]byte{nil, []byte("not packed"), b.Bytes()[:b.Len()/2]} {
			_, _, err = unpackModule("/lib/x.ko"+suffix, bytes.NewReader(bad))
			if suffix == ".zst" && bad == nil {
				continue // an empty file is no frames, which is an empty image
			}
			require.Error(t, err, suffix)
		}
	}
	_, compressed, err := unpackModule("/lib/x.ko", nil)
	require.NoError(t, err)
	require.False(t, compressed)
	_, _, err = unpackModule("/lib/x.ko.lz4", nil)
	require.ErrorContains(t, err, ".lz4")
}

func FuzzModulesDep(f *testing.F) {
	f.Add(dep)
	f.Add(":\n: :\na:a\n")
	f.Fuzz(func(t *testing.T, text string) {
		deps := parseModulesDep(text)
		for name := range deps {
			list, ok := deps.order(name)
			if ok && len(list) > len(deps) {
				t.Fatalf("%s: %d files of %d", name, len(list), len(deps))
			}
		}
	})
}

func TestInstallHint(t *testing.T) {
	for release, want := range map[string]string{
		"ID=debian\n":                 "apt-get install linux-image-" + debianArch(),
		"ID=ubuntu\nID_LIKE=debian\n": "apt-get install linux-modules-extra-6.12",
		"NAME=x\nID=\"rocky\"\nID_LIKE=\"rhel centos fedora\"\n": "dnf install '*/6.12/*/rdma_rxe.ko*'",
		"ID='opensuse-leap'\nID_LIKE=\"suse opensuse\"":          "zypper install kernel-default",
		"ID=mint\nID_LIKE=\"ubuntu debian\"":                     "linux-modules-extra-6.12",
		"ID=arch":                                                "pacman -S linux",
		"ID=plan9":                                               "",
		"":                                                       "",
	} {
		got := moduleManager(map[string]string{"etc/os-release": release}).installHint()
		if want == "" {
			require.Empty(t, got)
		}
		require.Contains(t, got, want, release)
	}
	require.Contains(t, moduleManager(map[string]string{"usr/lib/os-release": "ID=alpine\n"}).installHint(), "apk add")
	e := &NoModuleError{Module: "rdma_rxe", Release: "6.12", Dir: "/lib/modules/6.12"}
	require.Contains(t, e.Error(), "rdmashim vm run", "where no package is known")
}
