package confine

import (
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// dropCapabilities gives up all capabilities and tells what is kept: a process that stays root, whose
// files may be in folders of others, keeps the right to them.
func dropCapabilities() (kept string, err error) {
	var data [2]unix.CapUserData // two words of 32 capabilities
	kept = "none"
	if os.Geteuid() == 0 {
		data[0].Effective, data[0].Permitted = 1<<unix.CAP_DAC_OVERRIDE, 1<<unix.CAP_DAC_OVERRIDE
		kept = "CAP_DAC_OVERRIDE, of root"
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var has [2]unix.CapUserData
	if err := unix.Capget(&header, &has[0]); err == nil && has == data {
		return kept, nil
	}
	// Ambient ones go with the permitted ones (capabilities(7)).
	header = unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	return kept, onAllThreads("capset", unix.SYS_CAPSET, uintptr(unsafe.Pointer(&header)), uintptr(unsafe.Pointer(&data[0])), 0, 0, 0)
}
