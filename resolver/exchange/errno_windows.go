package exchange

import (
	"errors"

	"golang.org/x/sys/windows"
)

// isNoRoute says whether the system itself could not send.
func isNoRoute(err error) bool {
	return errors.Is(err, windows.WSAENETUNREACH) || errors.Is(err, windows.WSAEHOSTUNREACH) ||
		errors.Is(err, windows.WSAEAFNOSUPPORT) || errors.Is(err, windows.WSAEADDRNOTAVAIL)
}

// isPortTaken says whether another port would do.
func isPortTaken(err error) bool {
	return errors.Is(err, windows.WSAEADDRINUSE) || errors.Is(err, windows.WSAEACCES)
}
