package confine

import "golang.org/x/sys/unix"

const (
	auditArch = unix.AUDIT_ARCH_X86_64
	statAt    = unix.SYS_NEWFSTATAT
)

// ofMachine are the calls of this machine alone. Those of its x32 ABI have numbers above all others.
var ofMachine = []uint32{unix.SYS_ARCH_PRCTL, unix.SYS_POLL, unix.SYS_EPOLL_WAIT}
