//! Radios that move.

use ncmesh_medium::{
    Fading, Medium, MediumConfig, MediumError, PathLoss, Phy, RadioConfig, RadioId,
};

use crate::drive::{broadcast_from, links};

const AT_ORIGIN: [f64; 3] = [0.0; 3];

fn radios(shadowing_db: f64) -> MediumConfig {
    let path_loss = PathLoss::FreeSpace { frequency_hz: 2.4e9 };
    let positions = vec![AT_ORIGIN, [100.0, 0.0, 0.0]];
    let mut radio = RadioConfig::with_ranges(positions, path_loss, Fading::None, 150.0, 300.0);
    radio.shadowing_db = shadowing_db;
    MediumConfig::with_radios(Phy::DOT11B, radio, 11_000_000)
}

#[test]
fn a_radio_is_heard_where_it_is_now() {
    let mut medium = Medium::new(radios(0.0)).unwrap();
    let mut heard = |at: f64| {
        medium.move_to(&[(RadioId(1), [at, 0.0, 0.0])]).unwrap();
        broadcast_from(&mut medium, RadioId(0), 500, 10);
        medium.statistics().radios[1].deliveries
    };
    assert_eq!([100.0, 151.0, 149.0].map(&mut heard), [10, 10, 20]);
}

#[test]
fn what_cannot_move_stays() {
    let mut medium = Medium::new(radios(0.0)).unwrap();
    let far = medium.move_to(&[(RadioId(0), [1e8, 0.0, 0.0])]);
    assert!(matches!(far, Err(MediumError::BadPropagation { .. })), "{far:?}");
    let unknown = medium.move_to(&[(RadioId(2), AT_ORIGIN)]);
    assert_eq!(unknown, Err(MediumError::UnknownRadio { radio: RadioId(2), radios: 2 }));
    let shadowed = Medium::new(radios(4.0)).unwrap().move_to(&[(RadioId(0), AT_ORIGIN)]);
    assert!(shadowed.unwrap_err().to_string().contains("shadowing_db"));
    let links = MediumConfig::dot11b(links(2, &[(0, 1, 0.1)]), 11_000_000);
    let fixed = Medium::new(links).unwrap().move_to(&[(RadioId(0), AT_ORIGIN)]);
    assert_eq!(fixed, Err(MediumError::NoPositions));
}
