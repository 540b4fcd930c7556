use super::tree::{FANOUT, MAX_MERGE, sum_of_squares};
use super::*;
use proptest::prelude::*;

fn sorted(run: impl FnOnce(&mut dyn FnMut(DocId))) -> Vec<DocId> {
    let mut out = Vec::new();
    run(&mut |doc| out.push(doc));
    out.sort_unstable();
    out
}

fn exact(points: &[[f64; 3]], accept: impl Fn(&[f64; 3]) -> bool) -> Vec<DocId> {
    (0..).zip(points).filter(|(_, at)| accept(at)).map(|(doc, _)| doc).collect()
}

fn distance2(a: &[f64; 3], (x, y, z): Center) -> f64 {
    let dz = z.map_or(0.0, |z| a[2] - z);
    (a[0] - x) * (a[0] - x) + (a[1] - y) * (a[1] - y) + dz * dz
}

fn nearest_of(points: &[[f64; 3]], center: Center) -> Vec<(DocId, f64)> {
    let mut all: Vec<_> = (0..).zip(points).map(|(doc, at)| (doc, distance2(at, center))).collect();
    all.sort_by(|a, b| a.1.total_cmp(&b.1).then(a.0.cmp(&b.0)));
    all
}

/// The two ways points can get in, which must not differ in what is found.
fn built(points: &[[f64; 3]], is_loading: bool) -> SpatialIndex {
    let mut index = if is_loading { SpatialIndex::loading() } else { SpatialIndex::new() };
    (0..).zip(points).for_each(|(doc, &at)| _ = index.insert("map", at, doc));
    index.finish_loading(2);
    index
}

/// A grid's many ties, a floor plan, a corridor, and a thin tall shaft.
fn cloud() -> impl Strategy<Value = Vec<[f64; 3]>> {
    let grid =
        (-4i8..4, -4i8..4, 0i8..3).prop_map(|(x, y, z)| [f64::from(x), f64::from(y), f64::from(z)]);
    let floor = (-5e3..5e3f64, -5e3..5e3f64, 0.0..3.0f64).prop_map(|(x, y, z)| [x, y, z]);
    let corridor = (0.0..1.0f64, 0.0..500.0f64).prop_map(|(x, y)| [x, y, 0.0]);
    let shaft = (0.0..1.0f64, 0.0..80.0f64).prop_map(|(x, z)| [x, x, z]);
    let size = 0..3000usize;
    prop_oneof![
        prop::collection::vec(grid, size.clone()),
        prop::collection::vec(floor, size.clone()),
        prop::collection::vec(corridor, size.clone()),
        prop::collection::vec(shaft, size),
    ]
}

fn radius() -> impl Strategy<Value = f64> {
    prop_oneof![
        Just(0.0),
        Just(0.01),
        Just(1.0),
        Just(2.0),
        0.01..10.0f64,
        10.0..5e3f64,
        Just(1e300),
        Just(f64::MAX)
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]
    #[test]
    fn finds_what_a_scan_finds(
        points in cloud(),
        is_loading: bool,
        pick: prop::sample::Index,
        nudge in prop_oneof![Just([0.0; 3]), prop::array::uniform3(-3.0..3.0f64)],
        flat: bool,
        radius in radius(),
        size in prop_oneof![
            prop::array::uniform3(-0.5..40.0f64),
            prop::sample::select(vec![[0.0; 3], [2.0, 1.0, 1.0], [0.0, 3.0, 2.0]]),
        ],
    ) {
        let index = built(&points, is_loading);
        let near = if points.is_empty() { [0.0; 3] } else { *pick.get(&points) };
        let at: [f64; 3] = std::array::from_fn(|axis| near[axis] + nudge[axis]);
        let center = (at[0], at[1], (!flat).then_some(at[2]));

        let got = sorted(|f| index.within("map", center, radius, f));
        let want = exact(&points, |at| distance2(at, center).sqrt() <= radius);
        let loose = exact(&points, |at| distance2(at, center).sqrt() <= radius * (1.0 + 2e-9) + 2e-9);
        prop_assert!(want.iter().all(|doc| got.binary_search(doc).is_ok()));
        prop_assert!(got.iter().all(|doc| loose.binary_search(doc).is_ok()));
        prop_assert!(got.is_sorted_by(|a, b| a < b), "reported twice");

        let max: [f64; 3] = std::array::from_fn(|axis| at[axis] + size[axis]);
        let got = sorted(|f| index.in_box("map", at, max, f));
        prop_assert_eq!(got, exact(&points, |p| (0..3).all(|axis| at[axis] <= p[axis] && p[axis] <= max[axis])));

        prop_assert!(index.nearest("map", center).eq(nearest_of(&points, center)));
        prop_assert_eq!(index.nearest("Map", center).count(), 0);
    }

    #[test]
    fn finds_what_a_scan_finds_on_the_globe(
        places in prop::collection::vec(place(), 1..2000),
        bulk: bool,
        pick: prop::sample::Index,
        metres in prop_oneof![Just(0.01), 0.01..1.0f64, 1.0..5e3f64, Just(2e7)],
    ) {
        let points: Vec<_> = places.iter().map(|&(lat, lon)| unit(lat, lon)).collect();
        let mut index = if bulk { SpatialIndex::loading() } else { SpatialIndex::new() };
        (0..).zip(&points).for_each(|(doc, &at)| index.insert_geo(at, doc));
        index.finish_loading(2);
        // A little off a stored place: on the far side of the pole or date line, perhaps.
        let (lat, lon) = *pick.get(&places);
        let from = unit(lat + 1e-8, lon + 1e-8);
        let chord = 2.0 * (metres / EARTH / 2.0).sin();
        let got = sorted(|f| index.geo_within(from, chord, f));
        let want = exact(&points, |to| angle(&from, to) * EARTH <= metres);
        let loose = exact(&points, |to| angle(&from, to) * EARTH <= metres + 0.02);
        prop_assert!(want.iter().all(|doc| got.binary_search(doc).is_ok()));
        prop_assert!(got.iter().all(|doc| loose.binary_search(doc).is_ok()));
    }
}

const EARTH: f64 = 6_371_008.8;

/// Clusters some metres to kilometres wide about the poles, the date line and elsewhere.
fn place() -> impl Strategy<Value = (f64, f64)> {
    let hub = prop::sample::select(vec![
        (90.0, 0.0),
        (-90.0, 50.0),
        (0.0, 180.0),
        (67.0, -180.0),
        (48.1, 11.6),
    ]);
    let scale = prop::sample::select(vec![1e-7, 1e-4, 0.05]);
    (hub, scale, -1.0..1.0f64, -1.0..1.0f64).prop_map(|((lat, lon), scale, a, b)| {
        // About a pole every longitude is close.
        let spread = if f64::abs(lat) == 90.0 { 180.0 } else { scale };
        (lat + a * scale, lon + b * spread)
    })
}

fn unit(lat: f64, lon: f64) -> [f64; 3] {
    let (lat, lon) = (lat.to_radians(), lon.to_radians());
    [lat.cos() * lon.cos(), lat.cos() * lon.sin(), lat.sin()]
}

/// By the cross product: precise at any distance, and no kin of the chord.
fn angle(a: &[f64; 3], b: &[f64; 3]) -> f64 {
    let cross = [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
    sum_of_squares(cross).sqrt().atan2(a[0] * b[0] + a[1] * b[1] + a[2] * b[2])
}

#[test]
fn growth_keeps_few_trees_and_all_points() {
    let mut index = SpatialIndex::new();
    let mut noise = 1u64;
    for doc in 0..150_000 {
        noise = noise.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        index.insert("map", [(noise >> 40) as f64, (noise >> 20 & 0xfffff) as f64, 0.0], doc);
    }
    let cloud = &index.frames[0];
    assert!(cloud.trees.len() <= 150_000 / MAX_MERGE + 3 * FANOUT, "{} trees", cloud.trees.len());
    assert!(cloud.trees.iter().all(|tree| tree.points.len() <= MAX_MERGE));
    assert_eq!(size_of::<Point>(), 32);
    assert_eq!(
        sorted(|f| index.within("map", (0.0, 0.0, None), 1e9, f)),
        Vec::from_iter(0..150_000)
    );
}

#[test]
fn frames_are_told_apart_by_exact_name() {
    let mut index = SpatialIndex::new();
    index.insert("map", [0.0; 3], 1);
    index.insert("Map", [0.0; 3], 2);
    assert_eq!(sorted(|f| index.within("Map", (0.0, 0.0, None), 1.0, f)), [2]);
    assert_eq!(index.frame("map"), Some(FrameId(0)));
    assert_eq!((index.frame("Map"), index.frame("odom")), (Some(FrameId(1)), None));
}
