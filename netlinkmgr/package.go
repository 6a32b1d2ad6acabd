package netlinkmgr

import (
	"io/fs"
	"runtime"
	"strings"
)

// packages says for distributions (ID and ID_LIKE of /etc/os-release, see
// os-release(5)) which command installs rdma_rxe for the running kernel.
// %r is the kernel's release, %a the machine, as Go names it.
var packages = map[string]string{
	"debian":   "apt-get install linux-image-%a (the cloud kernels lack it), and boot it",
	"ubuntu":   "apt-get install linux-modules-extra-%r",
	"fedora":   rpmHint,
	"rhel":     rpmHint,
	"suse":     "zypper install kernel-default",
	"opensuse": "zypper install kernel-default",
	"arch":     "pacman -S linux, and boot it",
	"alpine":   "apk add linux-lts, and boot it",
}

// rpmHint asks for the file: which package holds it, kernel-modules or
// kernel-modules-extra, changed between releases, and some have none. dnf takes
// what begins with */ for a file that a package provides.
const rpmHint = "dnf install '*/%r/*/rdma_rxe.ko*'"

// InstallHint is the command that installs the package of this distribution
// which has rdma_rxe for the running kernel; empty when it is not known.
func (m *Manager) InstallHint() string {
	text, err := fs.ReadFile(m.k.Root, "etc/os-release")
	if err != nil {
		if text, err = fs.ReadFile(m.k.Root, "usr/lib/os-release"); err != nil {
			return ""
		}
	}
	for _, id := range osIDs(string(text)) {
		if hint, ok := packages[id]; ok {
			return strings.NewReplacer("%r", m.k.Release, "%a", runtime.GOARCH).Replace(hint)
		}
	}
	return ""
}

// osIDs lists ID, then the words of ID_LIKE.
func osIDs(text string) []string {
	var id, like string
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		value = strings.Trim(value, `"'`)
		switch key {
		case "ID":
			id = value
		case "ID_LIKE":
			like = value
		}
	}
	return append([]string{id}, strings.Fields(like)...)
}
