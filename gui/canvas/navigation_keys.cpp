#include "gui/canvas/navigation_keys.h"

#include <Qt>

namespace ringside::gui {

NavigationKey navigationKey(quint32 scanCode, int key) {
    if (key == Qt::Key_Left) return NavigationKey::Left;
    if (key == Qt::Key_Right) return NavigationKey::Right;
    switch (scanCode) {
        case 0: break;
        case 25: return NavigationKey::ZoomIn;   // W, or Z on a French keyboard
        case 39: return NavigationKey::ZoomOut;  // S
        case 38: return NavigationKey::Left;     // A, or Q on a French keyboard
        case 40: return NavigationKey::Right;    // D
        default: return NavigationKey::None;
    }
    switch (key) {
        case Qt::Key_W: return NavigationKey::ZoomIn;
        case Qt::Key_S: return NavigationKey::ZoomOut;
        case Qt::Key_A: return NavigationKey::Left;
        case Qt::Key_D: return NavigationKey::Right;
        default: return NavigationKey::None;
    }
}

}  // namespace ringside::gui
