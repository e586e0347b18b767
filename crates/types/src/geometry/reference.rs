//! Spatial reference systems: what the coordinates of an SRID mean.
//!
//! MySQL has some five thousand, from EPSG. Here are those whose distances and conversions are computed: SRID 0 (a
//! plane without units), WGS 84 (4326), ETRS89 (4258) and NAD83 (4269) with latitude and longitude on their ellipsoids,
//! and the map projection of the web (3857). Any other number is refused (3548), so that no coordinate is read in a
//! wrong order or unit.
//!
//! **Invariant:** the place of a system in [`SYSTEMS`] is stored with column types; new ones go to the end.

/// The shape of the Earth that a geographic system assumes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ellipsoid {
    /// In metres.
    pub semi_major: f64,
    pub inverse_flattening: f64,
}

impl Ellipsoid {
    pub fn flattening(&self) -> f64 {
        1.0 / self.inverse_flattening
    }

    pub fn semi_minor(&self) -> f64 {
        self.semi_major * (1.0 - self.flattening())
    }

    /// The radius of the sphere that stands for it: (2a + b) / 3.
    pub fn mean_radius(&self) -> f64 {
        (2.0 * self.semi_major + self.semi_minor()) / 3.0
    }
}

const WGS84: Ellipsoid = Ellipsoid { semi_major: 6_378_137.0, inverse_flattening: 298.257_223_563 };
const GRS80: Ellipsoid = Ellipsoid { semi_major: 6_378_137.0, inverse_flattening: 298.257_222_101 };

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SystemKind {
    /// A plane without a unit.
    Plane,
    /// Degrees; the axes are latitude, longitude.
    Geographic(Ellipsoid),
    /// Metres of the web's Mercator projection, over WGS 84.
    WebMercator,
}

/// One system.
#[derive(Debug)]
pub struct ReferenceSystem {
    pub srid: u32,
    pub name: &'static str,
    pub kind: SystemKind,
    /// Well-known text; empty for SRID 0.
    pub definition: &'static str,
}

macro_rules! geographic {
    ($name:literal, $datum:literal, $datum_code:literal, $spheroid:literal, $inverse:literal, $spheroid_code:literal, $code:literal) => {
        concat!(
            "GEOGCS[\"",
            $name,
            "\",DATUM[\"",
            $datum,
            "\",SPHEROID[\"",
            $spheroid,
            "\",6378137,",
            $inverse,
            ",AUTHORITY[\"EPSG\",\"",
            $spheroid_code,
            "\"]],AUTHORITY[\"EPSG\",\"",
            $datum_code,
            "\"]],PRIMEM[\"Greenwich\",0,AUTHORITY[\"EPSG\",\"8901\"]],UNIT[\"degree\",0.017453292519943278,",
            "AUTHORITY[\"EPSG\",\"9122\"]],AXIS[\"Lat\",NORTH],AXIS[\"Lon\",EAST],AUTHORITY[\"EPSG\",\"",
            $code,
            "\"]]"
        )
    };
}

macro_rules! wgs84 {
    () => {
        geographic!("WGS 84", "World Geodetic System 1984", "6326", "WGS 84", "298.257223563", "7030", "4326")
    };
}

/// All that there are. Places are stored.
pub const SYSTEMS: &[ReferenceSystem] = &[
    ReferenceSystem { srid: 0, name: "", kind: SystemKind::Plane, definition: "" },
    ReferenceSystem { srid: 4326, name: "WGS 84", kind: SystemKind::Geographic(WGS84), definition: wgs84!() },
    ReferenceSystem {
        srid: 3857,
        name: "WGS 84 / Pseudo-Mercator",
        kind: SystemKind::WebMercator,
        definition: concat!(
            "PROJCS[\"WGS 84 / Pseudo-Mercator\",",
            wgs84!(),
            ",PROJECTION[\"Popular Visualisation Pseudo Mercator\",AUTHORITY[\"EPSG\",\"1024\"]],",
            "PARAMETER[\"Latitude of natural origin\",0,AUTHORITY[\"EPSG\",\"8801\"]],",
            "PARAMETER[\"Longitude of natural origin\",0,AUTHORITY[\"EPSG\",\"8802\"]],",
            "PARAMETER[\"False easting\",0,AUTHORITY[\"EPSG\",\"8806\"]],",
            "PARAMETER[\"False northing\",0,AUTHORITY[\"EPSG\",\"8807\"]],",
            "UNIT[\"metre\",1,AUTHORITY[\"EPSG\",\"9001\"]],AXIS[\"X\",EAST],AXIS[\"Y\",NORTH],AUTHORITY[\"EPSG\",\"3857\"]]"
        ),
    },
    ReferenceSystem {
        srid: 4258,
        name: "ETRS89",
        kind: SystemKind::Geographic(GRS80),
        definition: geographic!(
            "ETRS89",
            "European Terrestrial Reference System 1989",
            "6258",
            "GRS 1980",
            "298.257222101",
            "7019",
            "4258"
        ),
    },
    ReferenceSystem {
        srid: 4269,
        name: "NAD83",
        kind: SystemKind::Geographic(GRS80),
        definition: geographic!(
            "NAD83",
            "North American Datum 1983",
            "6269",
            "GRS 1980",
            "298.257222101",
            "7019",
            "4269"
        ),
    },
];

impl ReferenceSystem {
    pub fn find(srid: u32) -> Option<&'static ReferenceSystem> {
        SYSTEMS.iter().find(|system| system.srid == srid)
    }

    pub fn ellipsoid(&self) -> Option<Ellipsoid> {
        match self.kind {
            SystemKind::Geographic(ellipsoid) => Some(ellipsoid),
            SystemKind::Plane | SystemKind::WebMercator => None,
        }
    }

    pub fn is_geographic(&self) -> bool {
        self.ellipsoid().is_some()
    }

    /// Whether lengths are in metres.
    pub fn has_unit(&self) -> bool {
        self.kind != SystemKind::Plane
    }
}

/// A unit of length and how many metres it is, as EPSG has them.
pub const UNITS: &[(&str, f64)] = &[
    ("British chain (Benoit 1895 A)", 20.1167824),
    ("British chain (Benoit 1895 B)", 20.116_782_494_375_872),
    ("British chain (Sears 1922 truncated)", 20.116756),
    ("British chain (Sears 1922)", 20.116_765_121_552_632),
    ("British foot (1865)", 0.304_800_833_333_333_35),
    ("British foot (1936)", 0.3048007491),
    ("British foot (Benoit 1895 A)", 0.304_799_733_333_333_3),
    ("British foot (Benoit 1895 B)", 0.304_799_734_763_270_77),
    ("British foot (Sears 1922 truncated)", 0.304_799_333_333_333_37),
    ("British foot (Sears 1922)", 0.304_799_471_538_676_2),
    ("British link (Benoit 1895 A)", 0.201167824),
    ("British link (Benoit 1895 B)", 0.201_167_824_943_758_7),
    ("British link (Sears 1922 truncated)", 0.20116756),
    ("British link (Sears 1922)", 0.201_167_651_215_526_3),
    ("British yard (Benoit 1895 A)", 0.9143992),
    ("British yard (Benoit 1895 B)", 0.914_399_204_289_812_4),
    ("British yard (Sears 1922 truncated)", 0.914398),
    ("British yard (Sears 1922)", 0.914_398_414_616_028_7),
    ("centimetre", 0.01),
    ("chain", 20.1168),
    ("Clarke's chain", 20.1166195164),
    ("Clarke's foot", 0.3047972654),
    ("Clarke's link", 0.201166195164),
    ("Clarke's yard", 0.9143917962),
    ("fathom", 1.8288),
    ("foot", 0.3048),
    ("German legal metre", 1.0000135965),
    ("Gold Coast foot", 0.304_799_710_181_508_8),
    ("Indian foot", 0.304_799_510_248_146_94),
    ("Indian foot (1937)", 0.30479841),
    ("Indian foot (1962)", 0.3047996),
    ("Indian foot (1975)", 0.3047995),
    ("Indian yard", 0.914_398_530_744_440_8),
    ("Indian yard (1937)", 0.91439523),
    ("Indian yard (1962)", 0.9143988),
    ("Indian yard (1975)", 0.9143985),
    ("kilometre", 1000.0),
    ("link", 0.201168),
    ("metre", 1.0),
    ("millimetre", 0.001),
    ("nautical mile", 1852.0),
    ("Statute mile", 1609.344),
    ("US survey chain", 20.116_840_233_680_47),
    ("US survey foot", 0.304_800_609_601_219_24),
    ("US survey link", 0.201_168_402_336_804_7),
    ("US survey mile", 1_609.347_218_694_437_5),
    ("yard", 0.9144),
];

/// How many metres a unit is, found by its name in any case.
pub fn unit(name: &str) -> Option<f64> {
    UNITS.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, metres)| *metres)
}
