// Navigation keys: W, A, S, D by where they are on the keyboard, whatever is printed on them.
#pragma once

#include <QtGlobal>

namespace ringside::gui {

enum class NavigationKey { None, ZoomIn, ZoomOut, Left, Right };

/// `scanCode` is an X11 key code (Linux's evdev code plus 8), as Qt reports it on X11 and Wayland; 0 where it is not known, then
/// the letter decides. Arrow keys left and right pan too.
NavigationKey navigationKey(quint32 scanCode, int key);

}  // namespace ringside::gui
